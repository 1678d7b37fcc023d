import { AwsServiceError } from '@platform/local/emulators/http/error'
import type { JsonObject } from '@platform/local/emulators/http/request'
import * as z from 'zod'
import { conflict, invalidValue, notFound } from './errors.ts'
import {
  activateLater,
  type Alias,
  arnOf,
  configurationOf,
  functionOf,
  type Lambda,
  type LambdaFunction,
  latestVersion,
  newRevision,
  parseAddress,
  replaceLatest,
  requireReady,
  requireRevision,
  type Revision,
  revisionOf,
  type Settings,
  summaryOf,
} from './function.ts'

export type Operation = (lambda: Lambda, input: JsonObject) => JsonObject | Promise<JsonObject>

function operation<Schema extends z.ZodType>(
  schema: Schema,
  perform: (lambda: Lambda, request: z.output<Schema>) => JsonObject | Promise<JsonObject>,
): Operation {
  return (lambda, input) => {
    const request = schema.safeParse(input)
    if (!request.success) throw new AwsServiceError('ValidationException', z.prettifyError(request.error))
    return perform(lambda, request.data)
  }
}

const FunctionName = z.string().min(1).max(170)
const address = { FunctionName, Qualifier: z.string().min(1).max(128).optional() }

/** Lambda's page size for functions and versions. */
const pageSize = 50

function page<Item>(
  items: readonly Item[],
  keyOf: (item: Item) => string,
  marker = '',
): { items: Item[]; NextMarker?: string } {
  const remainingItems = items.filter((item) => keyOf(item) > marker)
  const page = remainingItems.slice(0, pageSize)
  const lastItem = page.at(-1)
  return {
    items: page,
    ...(lastItem !== undefined && page.length < remainingItems.length && { NextMarker: keyOf(lastItem) }),
  }
}

const maxEnvironmentBytes = 4096
const reservedVariable = /^(?:_HANDLER$|_X_AMZN_TRACE_ID$|AWS_(?!XRAY_)|LAMBDA_(?:TASK_ROOT|RUNTIME_DIR)$)/

const Variables = z
  .record(z.string().regex(/^[a-zA-Z]\w+$/), z.string())
  .refine((variables) => !Object.keys(variables).some((name) => reservedVariable.test(name)), 'A name is reserved.')
  .refine(
    (variables) => Buffer.byteLength(JSON.stringify(variables)) <= maxEnvironmentBytes,
    `More than ${maxEnvironmentBytes} bytes.`,
  )

const Role = z.string().regex(/^arn:aws[a-z-]*:iam::\d{12}:role\/?[\w+=,.@/-]+$/)
const settingMembers = {
  Description: z.string().max(256).optional(),
  Role: Role.optional(),
  Timeout: z.int().min(1).max(900).optional(),
  MemorySize: z.int().min(128).max(10_240).optional(),
  Environment: z.object({ Variables: Variables.default({}) }).optional(),
  LoggingConfig: z.object({ LogGroup: z.string().regex(/^[\w./#-]{1,512}$/) }).optional(),
  Runtime: z.string().optional(),
  Handler: z.string().max(128).optional(),
}
const SettingMembers = z.object(settingMembers)
const Architectures = z.tuple([z.enum(['x86_64', 'arm64'])])

const codeMembers = {
  ImageUri: z.string().optional(),
  S3Bucket: z.string().optional(),
  S3Key: z.string().optional(),
  ZipFile: z
    .string()
    .transform((text) => Buffer.from(text, 'base64'))
    .optional(),
}

const defaultSettings = { Description: '', Timeout: 3, MemorySize: 128 } as const

function changeSettings(settings: Settings, request: z.infer<typeof SettingMembers>): Settings {
  const changes = Object.entries(SettingMembers.parse(request)).filter(([, value]) => value !== undefined)
  return Object.assign({}, settings, Object.fromEntries(changes))
}

const CreateRequest = z.object({
  ...settingMembers,
  FunctionName,
  Role,
  Code: z.object(codeMembers),
  PackageType: z.enum(['Image', 'Zip']).default('Zip'),
  Architectures: Architectures.default(['x86_64']),
  Tags: z.record(z.string(), z.string()).default({}),
})

export const createFunction = operation(CreateRequest, async (lambda, request) => {
  const { Code, PackageType: packageType, Role, Runtime, Handler, Tags: tags } = request
  const { name } = parseAddress(request)
  if (packageType === 'Zip' && (!Runtime?.startsWith('nodejs') || !Handler?.includes('.'))) {
    throw invalidValue('Only Node.js functions are supported, with a handler <file>.<export>.')
  }
  requireUnusedName(lambda, name)
  const code = await lambda.findCode({ packageType, ...Code })
  requireUnusedName(lambda, name)
  const settings = changeSettings({ ...defaultSettings, Role, architecture: request.Architectures[0] }, request)
  const latestRevision = newRevision({ functionName: name, version: latestVersion, settings, code, state: 'Pending' })
  latestRevision.stateReason = { code: 'Creating', text: 'The function is being prepared.' }
  const entry = {
    name,
    tags,
    latest: latestRevision,
    active: latestRevision,
    versions: new Map(),
    aliases: new Map(),
    versionCount: 0,
  }
  lambda.functions.set(name, entry)
  activateLater(lambda, latestRevision)
  return configurationOf(latestRevision)
})

function requireUnusedName({ functions }: Lambda, name: string): void {
  if (functions.has(name)) throw conflict(`The function ${name} already exists.`)
}

export const getFunction = operation(z.object(address), (lambda, request) => {
  const revision = revisionOf(lambda, request)
  const { tags } = functionOf(lambda, request)
  return { Configuration: configurationOf(revision), Code: revision.code.location, Tags: tags }
})

export const getFunctionConfiguration = operation(z.object(address), (lambda, request) =>
  configurationOf(revisionOf(lambda, request)),
)

export const deleteFunction = operation(z.object(address), async (lambda, request) => {
  const entry = functionOf(lambda, request)
  const { qualifier } = parseAddress(request)
  if (qualifier !== undefined) {
    await deleteVersion(lambda, entry, qualifier)
    return {}
  }
  lambda.functions.delete(entry.name)
  const revisions = [entry.latest, entry.active, ...entry.versions.values()]
  await Promise.all(revisions.map((revision) => lambda.fleet.retire(revision)))
  return {}
})

async function deleteVersion(lambda: Lambda, { name, versions, aliases }: LambdaFunction, version: string) {
  const revision = versions.get(version)
  if (revision === undefined) throw notFound(arnOf(name, version))
  const alias = [...aliases.values()].find((each) => each.version === version || version in each.weights)
  if (alias !== undefined) throw conflict(`The alias ${alias.name} refers to version ${version}.`)
  versions.delete(version)
  await lambda.fleet.retire(revision)
}

const Marker = z.string().optional()

export const listFunctions = operation(z.object({ Marker }), (lambda, request) => {
  const revisions = [...lambda.functions.values()].map(({ latest }) => latest)
  const keyOf = ({ functionName }: Revision) => functionName
  const sortedRevisions = revisions.toSorted((left, right) => (keyOf(left) < keyOf(right) ? -1 : 1))
  const { items, ...next } = page(sortedRevisions, keyOf, request.Marker)
  return { Functions: items.map(summaryOf), ...next }
})

export const listTags = operation(z.object({ Resource: z.string() }), (lambda, { Resource }) => ({
  Tags: functionOf(lambda, { FunctionName: Resource }).tags,
}))

const UpdateCodeRequest = z.object({
  FunctionName,
  ...codeMembers,
  Architectures: Architectures.optional(),
  RevisionId: z.string().optional(),
})

export const updateFunctionCode = operation(UpdateCodeRequest, async (lambda, request) => {
  const entry = functionOf(lambda, request)
  const code = await lambda.findCode({ packageType: entry.latest.code.packageType, ...request })
  requireReady(entry)
  requireRevision(entry.latest, request.RevisionId)
  const { latest } = entry
  const [architecture = latest.settings.architecture] = request.Architectures ?? []
  const revision = newRevision({ ...latest, code, settings: { ...latest.settings, architecture } })
  replaceLatest(lambda, entry, revision)
  return configurationOf(revision)
})

const UpdateConfigurationRequest = z.object({ ...settingMembers, FunctionName, RevisionId: z.string().optional() })

export const updateFunctionConfiguration = operation(UpdateConfigurationRequest, (lambda, request) => {
  const entry = functionOf(lambda, request)
  requireReady(entry)
  requireRevision(entry.latest, request.RevisionId)
  const revision = newRevision({ ...entry.latest, settings: changeSettings(entry.latest.settings, request) })
  replaceLatest(lambda, entry, revision)
  return configurationOf(revision)
})

const PublishRequest = z.object({
  FunctionName,
  Description: z.string().max(256).optional(),
  CodeSha256: z.string().optional(),
  RevisionId: z.string().optional(),
})

/** Publishes `$LATEST`, or returns the last version if code and settings, except the description, are the same. */
export const publishVersion = operation(PublishRequest, (lambda, { Description, CodeSha256, ...request }) => {
  const entry = functionOf(lambda, request)
  const { latest, versions, name } = entry
  requireReady(entry)
  requireRevision(latest, request.RevisionId)
  if (latest.state === 'Failed' || latest.lastUpdate === 'Failed') throw conflict(`${arnOf(name)} has failed.`)
  if (CodeSha256 !== undefined && CodeSha256 !== latest.code.sha256) {
    throw invalidValue('CodeSha256 differs from that of the code.')
  }
  const lastVersion = [...versions.values()].at(-1)
  if (lastVersion !== undefined && contentOf(lastVersion) === contentOf(latest)) return configurationOf(lastVersion)
  const version = String(++entry.versionCount)
  const settings = { ...latest.settings, ...(Description !== undefined && { Description }) }
  const revision = newRevision({ functionName: name, version, settings, code: latest.code, state: 'Pending' })
  versions.set(version, revision)
  activateLater(lambda, revision)
  return configurationOf(revision)
})

const contentOf = ({ code, settings }: Revision): string =>
  JSON.stringify([code.sha256, { ...settings, Description: '' }])

export const listVersions = operation(z.object({ FunctionName, Marker }), (lambda, request) => {
  const { latest, versions } = functionOf(lambda, request)
  const keyOf = ({ version }: Revision) => (version === latestVersion ? '0' : version).padStart(12, '0')
  const { items, ...next } = page([latest, ...versions.values()], keyOf, request.Marker)
  return { Versions: items.map(summaryOf), ...next }
})

const aliasAddress = { FunctionName, Name: z.string().regex(/^(?!\d+$)[\w-]{1,128}$/) }
const FunctionVersion = z.string().regex(/^(?:\$LATEST|\d+)$/)
const RoutingConfig = z
  .object({ AdditionalVersionWeights: z.record(z.string(), z.number().min(0).max(1)).default({}) })
  .optional()

export const createAlias = operation(
  z.object({ ...aliasAddress, FunctionVersion, RoutingConfig }),
  (lambda, { Name: name, FunctionVersion: version, ...request }) => {
    const entry = functionOf(lambda, request)
    if (entry.aliases.has(name)) throw conflict(`The alias ${name} already exists.`)
    return setAlias(entry, { name, version, weights: request.RoutingConfig?.AdditionalVersionWeights ?? {} })
  },
)

const UpdateAliasRequest = z.object({
  ...aliasAddress,
  FunctionVersion: FunctionVersion.optional(),
  RoutingConfig,
  RevisionId: z.string().optional(),
})

export const updateAlias = operation(UpdateAliasRequest, (lambda, request) => {
  const alias = aliasOf(lambda, request)
  requireRevision(alias, request.RevisionId)
  return setAlias(functionOf(lambda, request), {
    ...alias,
    version: request.FunctionVersion ?? alias.version,
    weights: request.RoutingConfig?.AdditionalVersionWeights ?? alias.weights,
  })
})

export const getAlias = operation(z.object(aliasAddress), (lambda, request) =>
  describeAlias(functionOf(lambda, request).name, aliasOf(lambda, request)),
)

function aliasOf(lambda: Lambda, request: { FunctionName: string; Name: string }): Alias {
  const { aliases, name } = functionOf(lambda, request)
  const alias = aliases.get(request.Name)
  if (alias === undefined) throw notFound(arnOf(name, request.Name))
  return alias
}

function setAlias({ name, versions, aliases }: LambdaFunction, change: Omit<Alias, 'revisionId'>): JsonObject {
  const otherVersions = Object.keys(change.weights)
  const missingVersion = [change.version, ...otherVersions].find(
    (version) => version !== latestVersion && !versions.has(version),
  )
  if (missingVersion !== undefined) throw notFound(arnOf(name, missingVersion))
  const usesLatest = change.version === latestVersion || otherVersions.includes(latestVersion)
  if (otherVersions.length > 1 || otherVersions.includes(change.version) || (otherVersions.length > 0 && usesLatest)) {
    throw invalidValue('An alias can only split traffic between two different published versions.')
  }
  const alias = { ...change, revisionId: crypto.randomUUID() }
  aliases.set(alias.name, alias)
  return describeAlias(name, alias)
}

const describeAlias = (functionName: string, { name, version, weights, revisionId }: Alias): JsonObject => ({
  AliasArn: arnOf(functionName, name),
  Name: name,
  FunctionVersion: version,
  RevisionId: revisionId,
  ...(Object.keys(weights).length > 0 && { RoutingConfig: { AdditionalVersionWeights: weights } }),
})
