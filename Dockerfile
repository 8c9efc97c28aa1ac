# Two images out of one file: `platform` (gateway, manager, ingestor, simulated exchange) and `spark` (history and tick archive).
# The base needs Python 3.11 with venv, nothing else; package indexes and certificates are whatever it is set up for.
ARG BASE_IMAGE=python:3.11.13-slim-bookworm

FROM ${BASE_IMAGE} AS runtime
RUN groupadd --gid 10001 relay \
 && useradd --uid 10001 --gid relay --no-create-home --home-dir /var/lib/relay --shell /usr/sbin/nologin relay \
 && install -d -o relay -g relay /var/lib/relay /var/lib/relay/manager /var/lib/relay/history /var/lib/relay/ingestor /var/lib/relay/objects
# A named volume takes the owner of the folder that it is first mounted over: no container ever has to be root.
COPY docker/healthy /usr/local/bin/healthy
ENV PATH=/opt/relay/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
WORKDIR /var/lib/relay

FROM ${BASE_IMAGE} AS tools
ENV UV_LINK_MODE=copy UV_NO_CACHE=1 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
RUN python3 -m venv /build/tools && /build/tools/bin/pip install -q uv==0.13.9
WORKDIR /build/source
COPY pyproject.toml requirements.lock ./
COPY clients/python/pyproject.toml clients/python/pyproject.toml
COPY docker/pinned.py docker/install.sh docker/
RUN sh docker/install.sh /build/tools build

FROM tools AS wheels
COPY . .
RUN /build/tools/bin/python -m hatchling build -t wheel -d /build/wheels \
 && cd clients/python && /build/tools/bin/python -m hatchling build -t wheel -d /build/wheels

# The accelerator, by the compiler of the base's own distribution: no further image is needed. It must be Rust 1.88 or later.
FROM tools AS accelerator
RUN apt-get update -qq \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends rustc-web cargo-web gcc libc6-dev >/dev/null \
 && rm -rf /var/lib/apt/lists/* \
 && { command -v cargo >/dev/null || ln -s "$(command -v cargo-web)" /usr/local/bin/cargo; }
COPY accelerator/pyproject.toml accelerator/
RUN sh docker/install.sh /build/tools accelerator
COPY accelerator accelerator
RUN cd accelerator && MATURIN_NO_INSTALL_RUST=1 PATH=/build/tools/bin:$PATH \
    maturin build -q --release --locked --compatibility linux --out /build/wheels

FROM tools AS platform-environment
RUN python3 -m venv --without-pip /opt/relay && sh docker/install.sh /opt/relay ingestors simulation manager client
COPY --from=wheels /build/wheels /build/wheels
COPY --from=accelerator /build/wheels /build/wheels
RUN /build/tools/bin/uv pip install -q --python /opt/relay/bin/python --no-deps --compile-bytecode /build/wheels/*.whl

FROM runtime AS platform
COPY --from=platform-environment /opt/relay /opt/relay
USER 10001:10001
ENTRYPOINT ["relay"]

FROM tools AS spark-environment
RUN python3 -m venv --without-pip /opt/relay && sh docker/install.sh /opt/relay spark java
COPY --from=wheels /build/wheels /build/wheels
COPY --from=accelerator /build/wheels /build/wheels
RUN /build/tools/bin/uv pip install -q --python /opt/relay/bin/python --no-deps --compile-bytecode \
    /build/wheels/market_relay-*.whl /build/wheels/relay_accel-*.whl
COPY docker/jars.py docker/
# The Java is found where it will be at run time; the resolver's own cache stays behind in this stage.
RUN RELAY_CACHE=/opt/relay-cache /opt/relay/bin/python docker/jars.py /opt/jars spark s3 \
 && rm -rf /opt/relay-cache/ivy /opt/relay-cache/jars

FROM runtime AS spark
COPY --from=spark-environment /opt/relay /opt/relay
COPY --from=spark-environment /opt/relay-cache /opt/relay-cache
COPY --from=spark-environment /opt/jars /opt/jars
ENV RELAY_CACHE=/opt/relay-cache
USER 10001:10001
ENTRYPOINT ["relay"]
CMD ["job", "history", "ticks", "bars", "triggers", "maintenance"]
