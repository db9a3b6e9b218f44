# Weir's image: /weir-operator, and /collector, the tenants' pods, and nothing else.
#
#   docker build -t weir --build-arg VERSION="$(git describe --tags --always --dirty)" .
#   docker buildx build --platform linux/amd64,linux/arm64 …
#
# hack/image.sh packs the same image without a container engine, and a test in hack/image compares the two.

# In full, so that both ways build with the same Go.
ARG GO_VERSION=1.26.8
# The digest of that image, as in sha256:…, which hack/digests.sh writes for a release; empty between releases.
ARG GO_DIGEST=

# On the machine's own platform: Go compiles for the others by itself, faster than an emulation would.
FROM --platform=$BUILDPLATFORM golang:${GO_VERSION}${GO_DIGEST:+@${GO_DIGEST}} AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY . .
ARG TARGETOS
ARG TARGETARCH
ARG VERSION=dev
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    GOOS=${TARGETOS} GOARCH=${TARGETARCH} hack/static.sh "${VERSION}" /out . ./collector

FROM scratch
ARG VERSION=dev
ARG REVISION=unknown
LABEL org.opencontainers.image.title="weir" \
      org.opencontainers.image.description="Collects a website's events, delivers them to ad and analytics platforms, and answers questions about them" \
      org.opencontainers.image.source="https://github.com/weir-dev/weir" \
      org.opencontainers.image.documentation="https://github.com/weir-dev/weir/tree/main/docs" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
COPY --from=build /out/weir-operator /out/collector /
# By number, so that a cluster can tell that it is not root.
USER 65532:65532
# The tenants' pods run /collector instead.
ENTRYPOINT ["/weir-operator"]
