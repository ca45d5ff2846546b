# Two stages: the builder has pip and uv, the image has a Python and one virtual environment.
ARG PYTHON=3.13
FROM python:${PYTHON}-slim AS builder
WORKDIR /src
COPY requirements/uv.txt requirements/build.txt requirements/run.txt requirements/
RUN python -m pip install --no-cache-dir --require-hashes -r requirements/uv.txt -r requirements/build.txt
ENV UV_COMPILE_BYTECODE=1 UV_LINK_MODE=copy VIRTUAL_ENV=/opt/drakit
RUN python -m venv --without-pip /opt/drakit && uv pip sync --require-hashes requirements/run.txt
COPY pyproject.toml README.md LICENSE ./
COPY drakit drakit
RUN python -m hatchling build -t wheel -d /dist && uv pip install --no-deps /dist/*.whl

FROM python:${PYTHON}-slim
ARG VERSION=0.1.0
LABEL org.opencontainers.image.title="drakit" \
      org.opencontainers.image.description="Kubernetes DRA node driver" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}"
COPY --from=builder /opt/drakit /opt/drakit
ENV PATH=/opt/drakit/bin:$PATH PYTHONUNBUFFERED=1
ENTRYPOINT ["drakit"]
CMD ["run"]
