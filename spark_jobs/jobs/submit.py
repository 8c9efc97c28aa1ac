"""Entry point for ``spark-submit``: ``spark-submit … spark_jobs/jobs/submit.py history --config FILE``."""

from spark_jobs.cli import command

if __name__ == "__main__":
    command(prog_name="spark-submit submit.py")
