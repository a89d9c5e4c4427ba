"""What kubectl says to built-in kinds that the API server does not understand, said in other words."""
