"""Matrix products and recurrent layers."""
