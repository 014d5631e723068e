"""The server behind `ova serve`: a model answers over HTTP, on FastAPI and uvicorn."""
