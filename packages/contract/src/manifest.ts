import * as z from 'zod'
import { permissions } from './permission.ts'

/** Maximum size of `module.json`, in bytes. */
export const manifestBytes = 262_144

/** Path of the published schema on every platform. */
export const manifestSchemaPath = '/schemas/module/v1.json'

// The pattern of semver.org, but major, minor and patch have at most 15 digits, so that JavaScript numbers represent
// them exactly.
const versionNumber = '(?:0|[1-9][0-9]{0,14})'
const numericIdentifier = '(?:0|[1-9][0-9]*)'
const prerelease = `(?:${numericIdentifier}|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)`
const semVer = new RegExp(
  `^${versionNumber}\\.${versionNumber}\\.${versionNumber}(?:-${prerelease}(?:\\.${prerelease})*)?(?:\\+[0-9a-zA-Z-]+(?:\\.[0-9a-zA-Z-]+)*)?$`,
)

/** A SemVer 2.0 version of at most 256 characters. Major, minor and patch have at most 15 digits. */
export const version = z.string().max(256).regex(semVer, 'must be a SemVer 2.0 version').meta({ example: '1.4.0' })

const kebabCase = (max: number) =>
  z
    .string()
    .max(max)
    .regex(/^[a-z][a-z0-9]*(?:-[a-z0-9]+)*$/, 'must be kebab-case')

const segment = String.raw`/(?!\.\.?(?:/|$))[A-Za-z0-9._~-]+`

/** Uses one pattern, because client generators support only one pattern per string. */
const pathWith = (start: string, rule: string) =>
  z
    .string()
    .max(256)
    .regex(new RegExp(`^${start}(?:/|(?:${segment})+)$`), rule)

const path = pathWith('', 'must be a plain absolute path without . or ..')

const text = (max: number) => z.string().min(1).max(max)

/** Id of a module. It is part of paths, function names and image labels. */
export const ModuleId = kebabCase(50).meta({
  description: 'Stable kebab-case id; must equal the id in the module’s code',
  example: 'hello',
})

/** Portal navigation menus that modules can add entries to. */
export const slotIds = ['nav.primary', 'nav.settings'] as const
export type SlotId = (typeof slotIds)[number]

/** Effects of a failing health check on the health of the module and the readiness of the platform. */
export const healthTags = ['informational', 'degradable', 'critical'] as const

export const NavSlot = z
  .strictObject({
    slotId: z.enum(slotIds),
    id: kebabCase(64).meta({ description: 'Unique in the slot', example: 'hello' }),
    label: text(40).meta({ example: 'Hello World' }),
    icon: z
      .string()
      .max(64)
      .regex(/^[a-z0-9]+(?:-[a-z0-9]+)*$/, 'must be a Lucide icon name')
      .meta({ description: 'A Lucide icon name', example: 'hand' }),
    route: pathWith('(?=/modules/[a-z])', 'must be a plain path that starts with /modules/<id>').meta({
      description: '/modules/<id> or below',
      example: '/modules/hello',
    }),
    order: z
      .int32()
      .min(0)
      .max(10_000)
      .meta({ description: 'Entries with lower values come first; built-in entries use 0 to 50', example: 100 }),
  })
  .meta({ id: 'NavSlot' })

const HealthCheckClaim = z.strictObject({
  name: kebabCase(64).meta({ description: 'Unique in the module', example: 'hello-module' }),
  path: path.meta({ example: '/health' }),
  tags: z.array(z.enum(healthTags)).max(3).default([]),
})

export const BackgroundJob = z.strictObject({
  id: kebabCase(64).meta({ description: 'Unique in the module', example: 'heartbeat' }),
  description: text(300),
  intervalSeconds: z.int32().min(1).max(86_400).meta({ description: 'Interval between calls', example: 60 }),
})

const Metadata = z.strictObject({
  id: ModuleId,
  name: text(80).meta({ description: 'Display name in the catalog' }),
  version,
  description: text(300).meta({ description: 'One sentence, shown in the catalog' }),
  author: text(120),
  publisher: text(120).optional(),
  license: text(120).optional(),
  repositoryUrl: z
    .url()
    .max(500)
    .regex(/^https:\/\//, 'must begin with https://')
    .optional(),
})

/** An event type, or all event types of an area, such as `platform.cluster.*`. */
export const EventPattern = z
  .string()
  .max(200)
  .regex(/^(?:platform|module)\.[a-z0-9-]+\.(?:\*|[a-z0-9_.-]+)$/, 'must be an event type, or platform.<area>.*')
  .meta({ example: 'platform.cluster.status_changed' })

const Spec = z.strictObject({
  sdkVersion: text(128).meta({
    description: 'Supported SDK versions: an npm range, or one like [0.1.0,1.0.0)',
    example: '>=0.1.0 <1.0.0',
  }),
  image: text(512).meta({
    description: 'Image reference with its registry',
    example: 'registry.example.com/modules/hello:1.0.0',
  }),
  apiBasePath: pathWith(
    '(?=/api/(?!v[0-9]+(?:/|$)|modules(?:/|$))[a-z0-9])',
    'must be a plain path /api/<name>, not /api/v<digit> or /api/modules',
  ).meta({ description: 'Prefix of the module’s API; must not overlap another module’s', example: '/api/hello' }),
  healthEndpoint: path.meta({ description: 'Returns 2xx while the module runs', example: '/health' }),
  permissionsRequired: z
    .array(z.enum(permissions))
    .max(permissions.length)
    .default([])
    .meta({ description: 'The permissions of a caller that the module can see; all others are left out of its token' }),
  events: z
    .array(EventPattern)
    .max(50)
    .default([])
    .meta({ description: 'The event types that the module may receive where an administrator allows them' }),
  navSlots: z.array(NavSlot).max(20).default([]),
  healthChecks: z.array(HealthCheckClaim).max(20).default([]),
  backgroundJobs: z.array(BackgroundJob).max(20).default([]),
})

/**
 * Version 1 of `module.json`. Objects are strict: a misspelled key is rejected. The platform checks at installation
 * what JSON Schema cannot express, for example whether an icon exists.
 */
export const ModuleManifest = z
  .strictObject({ $schema: z.url().max(500).optional(), metadata: Metadata, spec: Spec })
  .meta({ id: 'ModuleManifest', title: 'Platform module manifest, version 1' })

export type ModuleManifest = z.infer<typeof ModuleManifest>
export type NavSlot = z.infer<typeof NavSlot>

/** Returns the published JSON Schema 2020-12 of the manifest. Its `$id` is the same on every platform. */
export const manifestJsonSchema = () => ({
  $id: 'urn:platform:schemas:module:v1',
  ...z.toJSONSchema(ModuleManifest, { target: 'draft-2020-12', io: 'input', override: withExamples }),
})

// JSON Schema has no `example`, only a list of `examples`.
function withExamples({ jsonSchema }: { jsonSchema: Record<string, unknown> }): void {
  const { example } = jsonSchema
  if (example === undefined) return
  delete jsonSchema['example']
  jsonSchema['examples'] = [example]
}
