import { posix } from 'node:path'
import { isCode, type Reference, referencesOf, report, type Source, sources } from './source.ts'

/** Layer → the layers that it may import. Imports run one way; what is not named here is free: tests, scripts. */
const layers = {
  contract: [],
  oci: [],
  sdk: [],
  core: ['contract', 'oci'],
  http: ['contract', 'core'],
  api: ['contract', 'core', 'oci', 'http'],
  tasks: ['contract', 'core', 'oci', 'http', 'worker'],
  worker: ['contract', 'core', 'oci', 'sdk'],
  hello: ['sdk'],
  relay: [],
  cli: ['oci', 'sdk'],
  local: ['contract', 'core', 'worker', 'oci', 'api', 'tasks'],
  portal: [],
  infra: ['contract'],
} as const satisfies Record<string, readonly string[]>

type Layer = keyof typeof layers

/** The packages of others that a layer may load. A layer that is missing here may load any. */
const outsiders: Partial<Record<Layer, RegExp>> = {
  contract: /^zod$/,
  oci: /^(node:|tar-stream$|zod$)/,
  sdk: /^(node:|hono(\/|$))/,
  relay: /^node:/,
  cli: /^(node:|commander$|esbuild$|openapi-fetch$)/,
  portal: /^(?!node:)/,
}

/** Makes the OpenAPI document, with a library that no function shall carry. */
const documentMaker = 'packages/contract/src/openapi.ts'

/** What the command line needs of the platform: authors make and check their manifests with it. */
const forAuthors = new Set(['packages/contract/src/manifest.ts', 'packages/core/src/modules/check-manifest.ts'])

/** What the portal and those that serve it have to agree on: which pages there are. */
const forPortal = new Set(['packages/contract/src/portal-paths.ts'])

/** Made of the OpenAPI document: what any client knows of the API. */
const apiTypes = 'packages/contract/openapi.d.ts'

/** What the deployment has to agree on with the code that it deploys: the table, the settings, the metrics. */
const forDeployment = new Set([
  'packages/core/src/lib/settings/schema.ts',
  'packages/core/src/db/schema.ts',
  'packages/core/src/lib/settings/key-files.ts',
  'packages/core/src/lib/metrics.ts',
])

/** Packages whose folder is not called as they are. */
const folders: Readonly<Record<string, string>> = { modules: 'sdk' }

const isLayer = (name: string): name is Layer => Object.hasOwn(layers, name)

/** The layer that a file belongs to. Functions that serve the API lie flat; those of queues and schedules in folders. */
function layerOf(path: string): Layer | undefined {
  const [top = '', name = '', ...rest] = path.split('/')
  if (top === 'functions') return rest.length > 0 ? 'tasks' : 'api'
  const layer = top === 'packages' ? name : top
  return isLayer(layer) ? layer : undefined
}

/** What a package exports that lies beside its sources. */
const filesBeside: Readonly<Record<string, string>> = {
  'openapi-types': 'openapi.d.ts',
  'openapi.json': 'openapi.json',
}

/** The file that an import means; nothing for a package of others. */
function targetOf(path: string, specifier: string): string | undefined {
  if (specifier.startsWith('.')) return posix.join(posix.dirname(path), specifier)
  const [, name, inside = 'index'] = /^@platform\/([^/]+)(?:\/(.+))?$/.exec(specifier) ?? []
  return name === undefined
    ? undefined
    : `packages/${folders[name] ?? name}/${filesBeside[inside] ?? `src/${inside}.ts`}`
}

const packageOf = (path: string): string => path.split('/', 2).join('/')

function outsiderFault(path: string, layer: Layer, { specifier, isTypeOnly }: Reference): string | undefined {
  const allowed = outsiders[layer]
  if (isTypeOnly || !allowed || allowed.test(specifier)) return undefined
  if (path === documentMaker && specifier === 'zod-openapi') return undefined
  return `${layer} must not load ${specifier}`
}

function layerFault(from: Layer, to: Layer, isTypeOnly: boolean): string | undefined {
  const allowed: readonly string[] = layers[from]
  if (allowed.includes(to)) return undefined
  // These run elsewhere: what they know of the platform has to be gone when they are bundled.
  if ((from === 'relay' || from === 'sdk' || from === 'portal') && to === 'contract') {
    return isTypeOnly ? undefined : `${from} may import types of contract only, with "import type"`
  }
  return `${from} must not import ${to}`
}

function faultOf(path: string, layer: Layer, reference: Reference): string | undefined {
  const target = targetOf(path, reference.specifier)
  if (target === undefined) return outsiderFault(path, layer, reference)
  if (target === documentMaker) return 'the document is made by scripts, not at run time: read openapi.json'
  const to = layerOf(target)
  if (to === layer || (layer === 'cli' && forAuthors.has(target))) return undefined
  if (layer === 'portal' && forPortal.has(target) && !reference.specifier.startsWith('.')) return undefined
  if (target === apiTypes && reference.isTypeOnly) return undefined
  if (layer === 'infra' && forDeployment.has(target)) return undefined
  if (to === undefined) return `${layer} must not import ${target}`
  const isElsewhere = target.startsWith('packages/') && packageOf(target) !== packageOf(path)
  // The deployer bundles its configuration without the packages of this repository.
  const isByPath = layer !== 'infra' && isElsewhere && reference.specifier.startsWith('.')
  return layerFault(layer, to, reference.isTypeOnly) ?? (isByPath ? 'import another package by its name' : undefined)
}

/** Every import that runs against the order of the layers. */
export const boundaryViolations = (files: readonly Source[]): string[] =>
  files.filter(isCode).flatMap((file) => {
    const layer = layerOf(file.path)
    if (layer === undefined) return []
    return referencesOf(file).flatMap((reference) => {
      const fault = faultOf(file.path, layer, reference)
      return fault === undefined ? [] : [`${file.path}:${reference.line} ${fault}`]
    })
  })

if (import.meta.main) report(boundaryViolations(sources()))
