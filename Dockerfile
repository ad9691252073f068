# A pool in a container. Build it in a clone, from the packed archive: docs/containers.md
#   npm ci && npm pack
#   docker build -t mailchute .
ARG BASE=docker.io/library/node:24-bookworm-slim
FROM ${BASE}

# git makes worktrees; other programs that your tasks call belong here, too. Empty: nothing is installed.
ARG PACKAGES="ca-certificates git"
RUN if [ -n "$PACKAGES" ]; then apt-get update && apt-get install -y --no-install-recommends $PACKAGES && rm -rf /var/lib/apt/lists/*; fi

COPY mailchute-*.tgz /opt/mailchute/
RUN npm install --global --no-audit --no-fund /opt/mailchute/mailchute-*.tgz && rm -rf /opt/mailchute /root/.npm \
  && install -d -o 1000 -g 1000 /work

# All that is written lies in /work: mount something there that lasts. The rest may be read-only.
WORKDIR /work
# No container sees whether the processes of the one before it live: what a killed one has left is taken back after this silence.
ENV HOME=/work MAILCHUTE_STATE=/work/state MAILCHUTE_LEASE_TTL_MS=120000
USER 1000:1000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=10s --start-period=30s CMD ["mailchute", "health"]
ENTRYPOINT ["mailchute"]
CMD ["run"]
