{{- define "ballast.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "ballast.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else if contains (include "ballast.name" .) .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "ballast.name" .) | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* The selector never changes between versions of the chart: a Deployment's is immutable. */}}
{{- define "ballast.selector" -}}
app.kubernetes.io/name: {{ include "ballast.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "ballast.labels" -}}
{{ include "ballast.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | quote }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Of pods beside the daemon's: never what the Service, the disruption budget and the NetworkPolicy of the daemon select. */}}
{{- define "ballast.partLabels" -}}
{{- $top := index . 0 -}}
app.kubernetes.io/name: {{ printf "%s-%s" (include "ballast.name" $top) (index . 1) }}
app.kubernetes.io/instance: {{ $top.Release.Name }}
app.kubernetes.io/part-of: {{ include "ballast.name" $top }}
{{- end -}}

{{/* Not empty where any kind of action may write. */}}
{{- define "ballast.writes" -}}
{{- $s := .Values.settings -}}
{{- if ne ($s.mode | default "observe") "observe" }}yes{{ end -}}
{{- if or (index $s "auto.leader.rebalance.enable") (dig "auto" false ($s.leaders | default dict)) }}yes{{ end -}}
{{- range $kind, $own := ($s.actions | default dict) }}{{ if ne (dig "mode" "observe" $own) "observe" }}yes{{ end }}{{ end -}}
{{- end -}}

{{/* What driver and executors share. */}}
{{- define "ballast.sparkPod" -}}
{{- with .Values.sparkApplication -}}
labels:
  {{- include "ballast.partLabels" (list $ "spark") | nindent 2 }}
env:
  # A script that Spark starts sees its own folder only; the driver imports Ballast from here, for
  # `ballast fleet plan` the executors too.
  - name: PYTHONPATH
    value: {{ .pythonPath }}
  {{- with dig "samples" "store" "" $.Values.settings }}
  - name: BALLAST__SAMPLES__STORE
    value: {{ . | quote }}
  {{- end }}
  {{- with .env }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- if or .volumeMounts $.Values.store.claim }}
volumeMounts:
  {{- if $.Values.store.claim }}
  - name: store
    mountPath: {{ $.Values.store.path }}
  {{- end }}
  {{- with .volumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
{{- range $field := list "nodeSelector" "tolerations" "priorityClassName" }}
{{- with index $.Values $field }}
{{ $field }}: {{ toJson . }}
{{- end }}
{{- end }}
podSecurityContext:
  {{- include "ballast.podSecurity" $ | nindent 2 }}
securityContext:
  {{- if .securityContext }}
  {{- toYaml .securityContext | nindent 2 }}
  {{- else }}
  allowPrivilegeEscalation: false
  capabilities:
    drop: [ALL]
  {{- end }}
{{- end -}}
{{- end -}}

{{/* Ports that the settings name: a Prometheus, a store. */}}
{{- define "ballast.settingsPorts" -}}
{{- $ports := list -}}
{{- range list (dig "load" "prometheus" "url" "" .Values.settings) (dig "samples" "store" "" .Values.settings) -}}
{{- if contains "://" . -}}
{{- $u := urlParse . -}}
{{- $port := regexFind "[0-9]+$" (regexFind ":[0-9]+$" $u.host) -}}
{{- if $port }}{{ $ports = append $ports (int $port) }}{{ else if eq $u.scheme "http" }}{{ $ports = append $ports 80 }}{{ else if ne $u.scheme "file" }}{{ $ports = append $ports 443 }}{{ end -}}
{{- end -}}
{{- end -}}
{{- concat $ports .Values.networkPolicy.extraPorts | uniq | toJson -}}
{{- end -}}

{{- define "ballast.serviceAccount" -}}
{{- .Values.serviceAccount.name | default (include "ballast.fullname" .) -}}
{{- end -}}

{{/* What people call the cluster; a label of every series, so that alerts of two clusters are told apart. */}}
{{- define "ballast.cluster" -}}
{{- .Values.settings.cluster.name | default (include "ballast.fullname" .) -}}
{{- end -}}

{{/* Names under which the page is asked for, beside those of the Service, which need no mention. */}}
{{- define "ballast.hosts" -}}
{{- $names := list -}}
{{- if .Values.ingress.enabled }}{{ $names = concat $names .Values.ingress.hosts }}{{ end -}}
{{- if .Values.httpRoute.enabled }}{{ $names = concat $names .Values.httpRoute.hostnames }}{{ end -}}
{{- with concat $names .Values.web.hosts }}{{ toJson . }}{{ end -}}
{{- end -}}

{{- define "ballast.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{- define "ballast.podSecurity" -}}
runAsNonRoot: true
runAsUser: {{ .Values.runAs.user }}
runAsGroup: {{ .Values.runAs.group }}
fsGroup: {{ .Values.runAs.group }}
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "ballast.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{/* What every container of Ballast gets to know: who it is, where its files are, how it reaches the cluster. */}}
{{- define "ballast.env" -}}
- name: BALLAST_CONFIG
  value: /etc/ballast/settings/ballast.yaml
- name: BALLAST_INSTANCE
  valueFrom:
    fieldRef:
      fieldPath: metadata.name
- name: BALLAST__WEB__HOST
  value: 0.0.0.0
- name: BALLAST__WEB__PORT
  value: {{ .Values.web.port | quote }}
{{- with include "ballast.hosts" . }}
- name: BALLAST__WEB__HOSTS
  value: {{ . | quote }}
{{- end }}
{{- if .Values.web.tls.secret }}
- name: BALLAST__WEB__TLS_CERTIFICATE
  value: /etc/ballast/tls/tls.crt
- name: BALLAST__WEB__TLS_KEY
  value: /etc/ballast/tls/tls.key
{{- end }}
- name: BALLAST__LOG__FORMAT
  value: json
- name: HOME
  value: /tmp
{{- if .Values.web.token.secret }}
- name: BALLAST__WEB__TOKEN_FILE
  value: /etc/ballast/token/{{ .Values.web.token.key }}
{{- end }}
{{- if .Values.auth.properties.secret }}
- name: BALLAST_COMMAND_CONFIG
  value: /etc/ballast/client/{{ .Values.auth.properties.key }}
{{- end }}
{{- with .Values.auth.strimzi }}
{{- if .userSecret }}
- name: BALLAST_KAFKA_SECURITY_PROTOCOL
{{- if eq .authentication "tls" }}
  value: SSL
- name: BALLAST_KAFKA_SSL_CERTIFICATE_LOCATION
  value: /etc/ballast/strimzi-user/user.crt
- name: BALLAST_KAFKA_SSL_KEY_LOCATION
  value: /etc/ballast/strimzi-user/user.key
{{- else }}
  value: {{ ternary "SASL_SSL" "SASL_PLAINTEXT" (ne .clusterCaSecret "") }}
- name: BALLAST_KAFKA_SASL_MECHANISM
  value: SCRAM-SHA-512
- name: BALLAST_KAFKA_SASL_JAAS_CONFIG
  value: ${directory:/etc/ballast/strimzi-user:sasl.jaas.config}
{{- end }}
{{- if .clusterCaSecret }}
- name: BALLAST_KAFKA_SSL_CA_LOCATION
  value: /etc/ballast/strimzi-ca/ca.crt
{{- end }}
{{- end }}
{{- end }}
{{- with .Values.env }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "ballast.mounts" -}}
- name: settings
  mountPath: /etc/ballast/settings
  readOnly: true
- name: tmp
  mountPath: /tmp
{{- if .Values.store.claim }}
- name: store
  mountPath: {{ .Values.store.path }}
{{- end }}
{{- if .Values.web.tls.secret }}
- name: tls
  mountPath: /etc/ballast/tls
  readOnly: true
{{- end }}
{{- if .Values.web.token.secret }}
- name: token
  mountPath: /etc/ballast/token
  readOnly: true
{{- end }}
{{- if .Values.auth.properties.secret }}
- name: client
  mountPath: /etc/ballast/client
  readOnly: true
{{- end }}
{{- with .Values.auth.strimzi }}
{{- if .userSecret }}
- name: strimzi-user
  mountPath: /etc/ballast/strimzi-user
  readOnly: true
{{- end }}
{{- if and .userSecret .clusterCaSecret }}
- name: strimzi-ca
  mountPath: /etc/ballast/strimzi-ca
  readOnly: true
{{- end }}
{{- end }}
{{- range $i, $file := .Values.auth.files }}
- name: files-{{ $i }}
  mountPath: {{ $file.path }}
  readOnly: true
{{- end }}
{{- end -}}

{{- define "ballast.volumes" -}}
{{- include "ballast.volumesWith" (list . "256Mi") -}}
{{- end -}}

{{/* The same with another size of /tmp. */}}
{{- define "ballast.volumesWith" -}}
{{- $scratch := index . 1 -}}
{{- with index . 0 -}}
- name: settings
  configMap:
    name: {{ include "ballast.fullname" . }}
- name: tmp
  emptyDir:
    sizeLimit: {{ $scratch }}
{{- with .Values.store.claim }}
- name: store
  persistentVolumeClaim:
    claimName: {{ . }}
{{- end }}
{{- if .Values.web.tls.secret }}
- name: tls
  secret:
    secretName: {{ .Values.web.tls.secret }}
    defaultMode: 0440
{{- end }}
{{- if .Values.web.token.secret }}
- name: token
  secret:
    secretName: {{ .Values.web.token.secret }}
    defaultMode: 0440
{{- end }}
{{- if .Values.auth.properties.secret }}
- name: client
  secret:
    secretName: {{ .Values.auth.properties.secret }}
    defaultMode: 0440
{{- end }}
{{- with .Values.auth.strimzi }}
{{- if .userSecret }}
- name: strimzi-user
  secret:
    secretName: {{ .userSecret }}
    defaultMode: 0440
{{- end }}
{{- if and .userSecret .clusterCaSecret }}
- name: strimzi-ca
  secret:
    secretName: {{ .clusterCaSecret }}
    defaultMode: 0440
{{- end }}
{{- end }}
{{- range $i, $file := .Values.auth.files }}
- name: files-{{ $i }}
  secret:
    secretName: {{ $file.secret }}
    defaultMode: 0440
{{- end }}
{{- end -}}
{{- end -}}

{{- define "ballast.placement" -}}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end -}}

{{/* The pipeline's Job with executors of its own: who it is, and where what it tells Spark lies. */}}
{{- define "ballast.sparkName" -}}
{{- printf "%s-spark" (include "ballast.fullname" .) -}}
{{- end -}}

{{/* Not empty where the pipeline's Job starts executors. */}}
{{- define "ballast.startsExecutors" -}}
{{- if and .Values.pipeline.enabled (eq .Values.pipeline.spark "k8s") }}yes{{ end -}}
{{- end -}}

{{/* Not empty where the Spark operator's driver is who the chart makes for it. */}}
{{- define "ballast.operatorsDriver" -}}
{{- if and .Values.sparkApplication.enabled (not .Values.sparkApplication.serviceAccount) }}yes{{ end -}}
{{- end -}}

{{/* Not empty where a workload needs the rights of a Spark driver. */}}
{{- define "ballast.sparkRights" -}}
{{- include "ballast.startsExecutors" . }}{{ include "ballast.operatorsDriver" . -}}
{{- end -}}

{{/* Where the pipeline's samples are: without it the Job would start, fail and be started again. */}}
{{- define "ballast.needsStore" -}}
{{- if not (or (dig "samples" "store" "" .settings) (has "--store" .args)) -}}
{{- fail (printf "%s: where are the samples? Set settings.samples.store, or add --store and their URL to its args." .what) -}}
{{- end -}}
{{- end -}}
