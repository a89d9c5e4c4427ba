"""What may refuse or change a write before it is stored: built-in rules and admission webhooks."""
