"""The API client: credentials, raw-JSON requests, list/watch reflector. The only room that talks to an API server."""
