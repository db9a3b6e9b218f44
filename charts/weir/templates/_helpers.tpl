{{/* The beginning of all names. */}}
{{- define "weir.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" }}
{{- else }}
{{- $name := default .Chart.Name .Values.nameOverride }}
{{- if contains $name .Release.Name }}
{{- .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" }}
{{- end }}
{{- end }}
{{- end }}

{{- define "weir.operator" -}}
{{ include "weir.fullname" . }}-operator
{{- end }}

{{- define "weir.console" -}}
{{ include "weir.fullname" . }}-console
{{- end }}

{{/* The Secret in which the operator makes the keys with which the console signs. */}}
{{- define "weir.consoleKeys" -}}
{{ include "weir.console" . }}-keys
{{- end }}

{{- define "weir.redis" -}}
{{ include "weir.fullname" . }}-redis
{{- end }}

{{- define "weir.serviceAccount" -}}
{{- if .Values.operator.serviceAccount.create }}
{{- default (include "weir.operator" .) .Values.operator.serviceAccount.name }}
{{- else }}
{{- required "operator.serviceAccount.name: must name the ServiceAccount where create is false" .Values.operator.serviceAccount.name }}
{{- end }}
{{- end }}

{{/* The Secret with the operator's Redis URL; nothing where Properties bring their own. */}}
{{- define "weir.redisSecret" -}}
{{- if .Values.redis.existingSecret }}
{{- .Values.redis.existingSecret }}
{{- else if or .Values.redis.enabled .Values.redis.url }}
{{- include "weir.redis" . }}
{{- end }}
{{- end }}

{{/* The Secret in which the operator makes the bundled Redis's certificates; nothing where it makes none. */}}
{{- define "weir.madeCertificates" -}}
{{- if and .Values.redis.enabled .Values.redis.tls.enabled (not .Values.redis.tls.existingSecret) }}
{{- include "weir.redis" . }}-tls
{{- end }}
{{- end }}

{{/* The Secret with the certificates that the bundled Redis shows; nothing where it speaks no TLS. */}}
{{- define "weir.redisCertificates" -}}
{{- if and .Values.redis.enabled .Values.redis.tls.enabled }}
{{- default (include "weir.madeCertificates" .) .Values.redis.tls.existingSecret }}
{{- end }}
{{- end }}

{{/* The flags of who reaches the operator's Redis, of {context: $, made: whether to trust a file with what the operator has made}. */}}
{{- define "weir.tlsFlags" -}}
{{- $ca := ternary (include "weir.redisCertificates" .context) .context.Values.redis.tls.caSecret .context.Values.redis.enabled }}
{{- if and $ca (or .made (not (include "weir.madeCertificates" .context))) }}
- --redis-ca-file=/etc/weir/redis-ca/ca.crt
{{- end }}
{{- if and (not .context.Values.redis.enabled) .context.Values.redis.tls.clientCertificateSecret }}
- --redis-client-cert-file=/etc/weir/redis-client/tls.crt
- --redis-client-key-file=/etc/weir/redis-client/tls.key
{{- end }}
{{- end }}

{{/* Where these files are mounted. */}}
{{- define "weir.tlsMounts" -}}
{{- $flags := include "weir.tlsFlags" . }}
{{- if contains "--redis-ca-file" $flags }}
- name: redis-ca
  mountPath: /etc/weir/redis-ca
  readOnly: true
{{- end }}
{{- if contains "--redis-client" $flags }}
- name: redis-client
  mountPath: /etc/weir/redis-client
  readOnly: true
{{- end }}
{{- end }}

{{/* The volumes with them. A pod waits until the keys are there. */}}
{{- define "weir.tlsVolumes" -}}
{{- $flags := include "weir.tlsFlags" . }}
{{- if contains "--redis-ca-file" $flags }}
- name: redis-ca
  secret:
    secretName: {{ ternary (include "weir.redisCertificates" .context) .context.Values.redis.tls.caSecret .context.Values.redis.enabled }}
    defaultMode: 0440
    items:
    - key: ca.crt
      path: ca.crt
{{- end }}
{{- if contains "--redis-client" $flags }}
- name: redis-client
  secret:
    secretName: {{ .context.Values.redis.tls.clientCertificateSecret }}
    defaultMode: 0440
    items:
    - key: tls.crt
      path: tls.crt
    - key: tls.key
      path: tls.key
{{- end }}
{{- end }}

{{/* The flags of who reaches the operator's ClickHouse; nothing where there is none. */}}
{{- define "weir.clickHouseFlags" -}}
{{- with .Values.clickhouse }}
{{- if .existingSecret }}
- --clickhouse-url-file=/etc/weir/clickhouse/url
{{- if .tls.caSecret }}
- --clickhouse-ca-file=/etc/weir/clickhouse-ca/ca.crt
{{- end }}
{{- if .tls.clientCertificateSecret }}
- --clickhouse-client-cert-file=/etc/weir/clickhouse-client/tls.crt
- --clickhouse-client-key-file=/etc/weir/clickhouse-client/tls.key
{{- end }}
{{- else if or .tls.caSecret .tls.clientCertificateSecret }}
{{- fail "clickhouse.tls: caSecret and clientCertificateSecret are for a ClickHouse, so name it by clickhouse.existingSecret" }}
{{- end }}
{{- end }}
{{- end }}

{{/* Where these files are mounted. */}}
{{- define "weir.clickHouseMounts" -}}
{{- $flags := include "weir.clickHouseFlags" . }}
{{- range $name := list "clickhouse" "clickhouse-ca" "clickhouse-client" }}
{{- if contains (printf "/etc/weir/%s/" $name) $flags }}
- name: {{ $name }}
  mountPath: /etc/weir/{{ $name }}
  readOnly: true
{{- end }}
{{- end }}
{{- end }}

{{/* The volumes with them. A pod waits until the keys are there. */}}
{{- define "weir.clickHouseVolumes" -}}
{{- $flags := include "weir.clickHouseFlags" . }}
{{- $tls := .Values.clickhouse.tls }}
{{- range list (list "clickhouse" .Values.clickhouse.existingSecret "url") (list "clickhouse-ca" $tls.caSecret "ca.crt") (list "clickhouse-client" $tls.clientCertificateSecret "tls.crt" "tls.key") }}
{{- if contains (printf "/etc/weir/%s/" (first .)) $flags }}
- name: {{ first . }}
  secret:
    secretName: {{ index . 1 }}
    defaultMode: 0440
    items:
    {{- range slice . 2 }}
    - key: {{ . }}
      path: {{ . }}
    {{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* What the pods of all Properties have, without what is empty; nothing where nothing is said. */}}
{{- define "weir.podDefaults" -}}
{{- range $name, $value := .Values.tenants.podDefaults }}
{{- if $value }}
{{ toYaml (dict $name $value) }}
{{- end }}
{{- end }}
{{- end }}

{{/* The flags of what the pods of all Properties have; nothing where nothing is said of them. */}}
{{- define "weir.tenantFlags" -}}
{{- if include "weir.openshift" . }}
- --any-user
{{- end }}
{{- if include "weir.podDefaults" . }}
- --pod-defaults-file=/etc/weir/pod-defaults/pod-defaults.yaml
{{- end }}
{{- with .Values.tenants.deliveryProxy }}
{{- if .existingSecret }}
- --delivery-proxy-url-file=/etc/weir/delivery-proxy/url
{{- if .caSecret }}
- --delivery-proxy-ca-file=/etc/weir/delivery-proxy-ca/ca.crt
{{- end }}
- --delivery-proxy-connect-to={{ .connectTo }}
{{- else if or .caSecret (ne .connectTo "Address") }}
{{- fail "tenants.deliveryProxy: caSecret and connectTo are for a proxy, so name it by tenants.deliveryProxy.existingSecret" }}
{{- end }}
{{- end }}
{{- with .Values.tenants.tracing }}
{{- if .endpoint }}
- {{ printf "--tracing-endpoint=%s" .endpoint | quote }}
- --tracing-sample-ratio={{ .sampleRatio }}
{{- range .to }}
- {{ printf "--tracing-to=%s" (toJson .) | quote }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* Where the files that these name are mounted. */}}
{{- define "weir.tenantMounts" -}}
{{- $flags := include "weir.tenantFlags" . }}
{{- range $name := list "pod-defaults" "delivery-proxy" "delivery-proxy-ca" }}
{{- if contains (printf "/etc/weir/%s/" $name) $flags }}
- name: {{ $name }}
  mountPath: /etc/weir/{{ $name }}
  readOnly: true
{{- end }}
{{- end }}
{{- end }}

{{/* The volumes with them. */}}
{{- define "weir.tenantVolumes" -}}
{{- $flags := include "weir.tenantFlags" . }}
{{- if contains "/etc/weir/pod-defaults/" $flags }}
- name: pod-defaults
  configMap:
    name: {{ include "weir.operator" . }}-pod-defaults
{{- end }}
{{- range list (list "delivery-proxy" .Values.tenants.deliveryProxy.existingSecret "url") (list "delivery-proxy-ca" .Values.tenants.deliveryProxy.caSecret "ca.crt") }}
{{- if contains (printf "/etc/weir/%s/" (first .)) $flags }}
- name: {{ first . }}
  secret:
    secretName: {{ index . 1 }}
    defaultMode: 0440
    items:
    - key: {{ last . }}
      path: {{ last . }}
{{- end }}
{{- end }}
{{- end }}

{{/* An image, of {image: …, tag: …}: the tag is for where the image names neither tag nor digest. */}}
{{- define "weir.image" -}}
{{- if .image.digest }}
{{- printf "%s@%s" .image.repository .image.digest }}
{{- else }}
{{- printf "%s:%s" .image.repository (default .tag .image.tag) }}
{{- end }}
{{- end }}

{{- define "weir.ownImage" -}}
{{ include "weir.image" (dict "image" .Values.image "tag" .Chart.AppVersion) }}
{{- end }}

{{/* Labels by which a component's pods are told, of {context: $, component: …}. Not weir alone: that is the name of Properties' pods. */}}
{{- define "weir.selector" -}}
app.kubernetes.io/name: weir-{{ .component }}
app.kubernetes.io/instance: {{ .context.Release.Name }}
{{- end }}

{{/* All labels of a component's objects, of {context: $, component: …}. */}}
{{- define "weir.labels" -}}
{{ include "weir.selector" . }}
app.kubernetes.io/version: {{ .context.Chart.AppVersion | quote }}
app.kubernetes.io/part-of: weir
app.kubernetes.io/managed-by: {{ .context.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .context.Chart.Name .context.Chart.Version | replace "+" "_" }}
{{- with .context.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* The annotations of an object, of {context: $, own: {…}}; nothing where there are none. */}}
{{- define "weir.annotations" -}}
{{- with merge (dict) (default (dict) .own) .context.Values.commonAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* Whether the cluster chooses the pods' users: "true" or nothing. */}}
{{- define "weir.openshift" -}}
{{- $asked := .Values.openshift }}
{{- if kindIs "bool" $asked }}
{{- if $asked }}true{{ end }}
{{- else if .Capabilities.APIVersions.Has "security.openshift.io/v1" }}true
{{- end }}
{{- end }}

{{/* What restricted Pod Security asks of a pod, and what our images are made for. */}}
{{- define "weir.podSecurity" -}}
runAsNonRoot: true
{{- if not (include "weir.openshift" .) }}
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
{{- end }}
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{/* The same of a container. */}}
{{- define "weir.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{/* Where a pod may run, of operator or redis in the values. */}}
{{- define "weir.placement" -}}
{{- with .priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "weir.pullSecrets" -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* Whether to make an object of a kind of the Prometheus operator's, of {context: $, asked: auto|true|false, kind: …}: "true" or nothing. */}}
{{- define "weir.monitoring" -}}
{{- if kindIs "bool" .asked }}
{{- if .asked }}true{{ end }}
{{- else if .context.Capabilities.APIVersions.Has (printf "monitoring.coreos.com/v1/%s" .kind) }}true
{{- end }}
{{- end }}


{{/* Whether to hold the operator's account to what Properties are made of, by a policy of the cluster's: "true" or nothing. */}}
{{- define "weir.admissionPolicy" -}}
{{- $asked := .Values.rbac.admissionPolicy }}
{{- if kindIs "bool" $asked }}
{{- if $asked }}true{{ end }}
{{- else if and .Values.clusterWide (semverCompare ">=1.30-0" .Capabilities.KubeVersion.Version) }}true
{{- end }}
{{- end }}

{{/* Whether to hold people to their own rights where they make keys and tokens, by a policy of the cluster's: "true" or nothing. */}}
{{- define "weir.credentialsPolicy" -}}
{{- $asked := .Values.rbac.credentialsPolicy }}
{{- if kindIs "bool" $asked }}
{{- if $asked }}true{{ end }}
{{- else if and .Values.crds.install (semverCompare ">=1.30-0" .Capabilities.KubeVersion.Version) }}true
{{- end }}
{{- end }}
