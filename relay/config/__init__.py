"""Settings: one frozen model per application, read in the composition root only."""

from relay.config.settings import ApplicationSettings, load_settings

__all__ = ["ApplicationSettings", "load_settings"]
