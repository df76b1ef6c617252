"""Who may do what: tokens, access lists, identities."""
