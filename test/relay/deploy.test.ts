import { Ajv } from 'ajv'
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'

const read = (name: string) => readFileSync(`packages/relay/deploy/${name}`, 'utf8')

// The fields of the Kubernetes API that the manifest uses, with their types and required siblings.
const shape = (properties: object, required: string[] = Object.keys(properties)) => ({
  type: 'object',
  additionalProperties: false,
  properties,
  required,
})
const list = (items: object) => ({ type: 'array', minItems: 1, items })
const name = { type: 'string', pattern: '^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$' }
const labels = { type: 'object', additionalProperties: { type: 'string', maxLength: 63 } }
const quantity = { type: 'string', pattern: '^[0-9]+(m|Mi|Gi)?$' }
const quantities = {
  type: 'object',
  propertyNames: { enum: ['cpu', 'memory', 'storage'] },
  additionalProperties: quantity,
}
const [yes, id, text] = [{ type: 'boolean' }, { type: 'integer', minimum: 1 }, { type: 'string', minLength: 1 }]
const metadata = shape({ name })

const container = shape({
  name,
  image: text,
  envFrom: list(shape({ secretRef: shape({ name }) })),
  securityContext: shape({
    allowPrivilegeEscalation: { const: false },
    readOnlyRootFilesystem: yes,
    capabilities: shape({ drop: list({ const: 'ALL' }) }),
  }),
  resources: shape({ requests: quantities, limits: quantities }),
  volumeMounts: list(shape({ name, mountPath: { type: 'string', pattern: '^/' } })),
})
const volume = shape(
  {
    name,
    persistentVolumeClaim: shape({ claimName: name }),
    emptyDir: shape({ sizeLimit: quantity }),
    configMap: shape({ name, optional: yes }),
  },
  ['name'],
)
const pod = shape({
  serviceAccountName: name,
  automountServiceAccountToken: yes,
  enableServiceLinks: yes,
  terminationGracePeriodSeconds: id,
  securityContext: shape({
    runAsNonRoot: { const: true },
    runAsUser: id,
    runAsGroup: id,
    fsGroup: id,
    seccompProfile: shape({ type: { enum: ['RuntimeDefault', 'Localhost', 'Unconfined'] } }),
  }),
  containers: list(container),
  volumes: list(volume),
})
const deployment = shape({
  replicas: { const: 1 },
  strategy: shape({ type: { const: 'Recreate' } }),
  selector: shape({ matchLabels: labels }),
  template: shape({ metadata: shape({ labels }), spec: pod }),
})
const claim = shape({
  accessModes: list({ enum: ['ReadWriteOnce', 'ReadWriteMany', 'ReadWriteOncePod'] }),
  resources: shape({ requests: quantities }),
})
const kind = (apiVersion: string, kind: string, rest: object) =>
  shape({ apiVersion: { const: apiVersion }, kind: { const: kind }, metadata, ...rest })
const schema = {
  oneOf: [
    kind('v1', 'PersistentVolumeClaim', { spec: claim }),
    kind('v1', 'ServiceAccount', { automountServiceAccountToken: yes }),
    kind('apps/v1', 'Deployment', { spec: deployment }),
  ],
}

test('the Kubernetes manifest has only fields of its kinds, and its names refer to each other', () => {
  const documents = parseAllDocuments(read('kubernetes.yaml')).map((document) => document.toJS())
  const validate = new Ajv().compile(schema)
  for (const document of documents) expect([validate(document), validate.errors]).toEqual([true, null])
  const { selector, template } = documents.at(-1).spec
  expect(template.metadata.labels).toEqual(selector.matchLabels)
  const [{ volumeMounts }] = template.spec.containers
  expect(volumeMounts.map(({ name }: { name: string }) => name)).toEqual(
    template.spec.volumes.map(({ name }: { name: string }) => name),
  )
  expect(validate({ ...documents[0], sepc: {} })).toBe(false)
})

test('the Compose file and the manifest run one relay as the user of the image, with its state in a volume', () => {
  const state = '/var/lib/platform-relay'
  const dockerfile = read('Dockerfile')
  expect(dockerfile).toMatch(
    new RegExp(`USER 10001:10001\n.*\nVOLUME ${state}\nENTRYPOINT .*"--state-dir", "${state}"]`),
  )
  const { services, volumes } = parse(read('compose.yaml'))
  expect(services.relay.volumes[0]).toBe(`state:${state}`)
  expect([Object.keys(volumes), services.relay.read_only, services.relay.cap_drop]).toEqual([['state'], true, ['ALL']])
})
