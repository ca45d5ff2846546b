"""A fake API server over real HTTP(S), standing on drakit.admission."""
