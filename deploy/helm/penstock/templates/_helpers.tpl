{{- /*
Every template gets a dictionary of `root`, the chart's context, and `role`: gateway, effects or sink. A sink also has
`sink`, its name. `values` are the values of the role.
*/}}

{{- define "penstock.name" -}}
{{- $root := .root -}}
{{- if eq .role "gateway" -}} {{ $root.Release.Name }}
{{- else if eq .role "effects" -}} {{ $root.Release.Name }}-effects
{{- else -}} {{ $root.Release.Name }}-sink-{{ .sink }}
{{- end -}}
{{- end }}

{{- define "penstock.selector" -}}
app.kubernetes.io/name: penstock
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .role }}
{{- with .sink }}
penstock-sink: {{ . }}
{{- end }}
{{- end }}

{{- define "penstock.metadata" -}}
name: {{ include "penstock.name" . }}{{ .suffix | default "" }}
namespace: {{ .root.Release.Namespace }}
labels:
  {{- include "penstock.selector" . | nindent 2 }}
  app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
  app.kubernetes.io/managed-by: {{ .root.Release.Service }}
  helm.sh/chart: {{ .root.Chart.Name }}-{{ .root.Chart.Version }}
{{- end }}

{{- define "penstock.image" -}}
{{- $image := .root.Values.image -}}
{{ .values.image | default (printf "%s:%s" $image.repository ($image.tag | default .root.Chart.AppVersion)) }}
{{- end }}

{{- define "penstock.natsUrl" -}}
{{- $values := .Values -}}
{{- if $values.nats.enabled -}}
{{- $name := $values.nats.nameOverride | default "nats" -}}
{{- $release := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) -}}
nats://{{ $values.nats.fullnameOverride | default $release | trunc 63 | trimSuffix "-" }}:4222
{{- else -}}
{{ required "natsUrl: the URL of your NATS is required, because nats.enabled is false" $values.natsUrl }}
{{- end -}}
{{- end }}

{{- /* The Secrets that a pod mounts, as YAML. */}}
{{- define "penstock.mounts" -}}
{{- $mounts := concat .root.Values.secretMounts .values.secretMounts -}}
{{- with .root.Values.admin.existingSecret -}}
{{- $mounts = append $mounts (dict "secret" . "path" "/etc/penstock/ports") -}}
{{- end -}}
{{- toYaml $mounts -}}
{{- end }}

{{- /* Settings of the role take precedence over common ones, and both over those of the chart (`own`). */}}
{{- define "penstock.env" -}}
{{- $common := .root.Values -}}
{{- $secrets := merge (dict) .values.secretSettings $common.secretSettings -}}
{{- $ports := dict "PENSTOCK_ADMIN_AUTH" "off" -}}
{{- if $common.admin.existingSecret -}}
{{- $ports = dict "PENSTOCK_ADMIN_TOKEN_FILE" "/etc/penstock/ports/admin" "PENSTOCK_READ_TOKEN_FILE" "/etc/penstock/ports/read" -}}
{{- end -}}
{{- $settings := merge (dict) .values.settings $common.settings .own $ports (dict "PENSTOCK_NATS_URL" (include "penstock.natsUrl" .root)) -}}
{{- range $name, $value := $settings }}
{{- if not (hasKey $secrets $name) }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- end }}
{{- range $name, $from := $secrets }}
- name: {{ $name }}
  valueFrom:
    secretKeyRef:
      {{- toYaml $from | nindent 6 }}
{{- end }}
{{- end }}

{{- /* The fields of a pod that all roles have. */}}
{{- define "penstock.pod" -}}
automountServiceAccountToken: false
# The variables of a Service called penstock would be unknown settings.
enableServiceLinks: false
terminationGracePeriodSeconds: 45
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile:
    type: RuntimeDefault
{{- with .values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- $mounts := include "penstock.mounts" . | fromYamlArray }}
volumes:
  - name: tmp
    emptyDir:
      sizeLimit: 64Mi
  {{- if (.values.storage | default dict).size }}
  - name: data
    persistentVolumeClaim:
      claimName: {{ include "penstock.name" . }}
  {{- end }}
  {{- range $index, $mount := $mounts }}
  - name: secret-{{ $index }}
    secret:
      secretName: {{ $mount.secret }}
  {{- end }}
{{- end }}

{{- /* The fields of a container that all roles have. */}}
{{- define "penstock.container" -}}
image: {{ include "penstock.image" . }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
args: {{ toJson .args }}
env:
  {{- include "penstock.env" . | trim | nindent 2 }}
# It responds even if NATS is not available yet: waiting for NATS and its streams has no time limit.
startupProbe:
  httpGet: { path: /livez, port: {{ .probed }} }
  periodSeconds: 2
  failureThreshold: 30
# Checks liveness, not readiness: restarting does not fix an unreachable store.
livenessProbe:
  httpGet: { path: /livez, port: {{ .probed }} }
  periodSeconds: 10
  timeoutSeconds: 3
  failureThreshold: 3
resources:
  {{- toYaml .values.resources | nindent 2 }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: ["ALL"]
{{- $mounts := include "penstock.mounts" . | fromYamlArray }}
volumeMounts:
  - name: tmp
    mountPath: /tmp
  {{- if (.values.storage | default dict).size }}
  - name: data
    mountPath: /data
  {{- end }}
  {{- range $index, $mount := $mounts }}
  - name: secret-{{ $index }}
    mountPath: {{ $mount.path }}
    readOnly: true
  {{- end }}
{{- end }}

{{- /* A volume that outlives the release. */}}
{{- define "penstock.volume" -}}
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  {{- include "penstock.metadata" . | nindent 2 }}
  annotations:
    helm.sh/resource-policy: keep
spec:
  accessModes: ["ReadWriteOnce"]
  {{- with .values.storage.className }}
  storageClassName: {{ . }}
  {{- end }}
  resources:
    requests:
      storage: {{ .values.storage.size }}
{{- end }}

{{- /* Without a ClusterIP, for metrics and health; also of pods that are not ready: that is when metrics matter. */}}
{{- define "penstock.metricsService" -}}
apiVersion: v1
kind: Service
metadata:
  {{- include "penstock.metadata" . | nindent 2 }}
spec:
  clusterIP: None
  publishNotReadyAddresses: true
  selector:
    {{- include "penstock.selector" . | nindent 4 }}
  ports:
    - name: {{ .probed }}
      port: {{ .port }}
      targetPort: {{ .probed }}
{{- end }}
