"""Versions that do not fit are told before the JVM starts."""

from __future__ import annotations

import pyspark
import pytest

from relay.errors import SettingsError
from spark_jobs.jobs.session import check_spark


@pytest.mark.parametrize("version", ["4.2.0", "4.0.1", "3.5.6", "5.1.0"])
def test_a_spark_that_the_iceberg_runtime_is_not_made_for_is_refused_in_words_case_133(version: str) -> None:
    with pytest.raises(SettingsError, match=rf"expected Spark 4\.1, .* got {version}; install pyspark 4\.1"):
        check_spark(version)


def test_the_spark_that_is_installed_fits() -> None:
    check_spark(pyspark.__version__)
    check_spark("4.1.99")
