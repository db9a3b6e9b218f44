#!/usr/bin/env bash
# Copies into charts/weir what the chart takes from config/, the CustomResourceDefinitions and the roles, and the configuration of the
# Redis that the operator makes for a Property, which is the bundled one's as well. A chart can only read files of its own, so it has copies; `make generate` makes them and `make verify` proves that they are fresh.
set -euo pipefail
cd "$(dirname "$0")/.."

cp config/crd/bases/weir.dev_{properties,accesstokens,apikeys}.yaml \
  config/rbac/{role,admission_policy,credentials_policy,console_role,leader_election_role,property_view_role,property_edit_role,property_admin_role}.yaml \
  controllers/resources/redis{,-tls}.conf \
  charts/weir/files/
