"""`sluice demo`: the whole product on one machine, in a minute, with nothing set up beforehand."""
