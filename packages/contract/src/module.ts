import * as z from 'zod'
import { id, listOf, pathId, timestamp } from './common.ts'
import { createRoute, json, jsonBody } from './endpoint.ts'
import { BackgroundJob, EventPattern, healthTags, ModuleId, NavSlot, version } from './manifest.ts'
import { permissions } from './permission.ts'

export const moduleStates = ['Installing', 'Running', 'Upgrading', 'Failed', 'Uninstalling'] as const

export const moduleHealths = ['Healthy', 'Degraded', 'Unhealthy', 'Unknown'] as const
export type ModuleHealth = (typeof moduleHealths)[number]

export const moduleErrorCodes = [
  'PLAT-MOD-5001',
  'PLAT-MOD-5004',
  'PLAT-MOD-5005',
  'PLAT-MOD-5006',
  'PLAT-MOD-5007',
  'PLAT-MOD-5008',
] as const
export type ModuleErrorCode = (typeof moduleErrorCodes)[number]

/** Errors of a module's lifecycle: code → meaning. */
export const moduleErrors: Record<ModuleErrorCode, string> = {
  'PLAT-MOD-5001': 'The id in the module’s code differs from the id in its manifest.',
  'PLAT-MOD-5004': 'Configuring the module failed.',
  'PLAT-MOD-5005': 'Starting the module failed.',
  'PLAT-MOD-5006': 'The module did not become healthy.',
  'PLAT-MOD-5007': 'The module could not be deployed.',
  'PLAT-MOD-5008': 'The module crashed too often.',
}

/** Warning about a running module whose code declares other navigation slots than its manifest. */
export const slotWarning = 'The slots in the module’s code differ from spec.navSlots.'

const ModuleCheck = z.object({
  name: z.string().max(64),
  status: z.enum(['Healthy', 'Degraded', 'Unhealthy']),
  tags: z.array(z.enum(healthTags)).max(3),
  description: z.string().max(500),
  durationMs: z.number().min(0).meta({ format: 'double' }),
  checkedAt: timestamp,
})

/** A module that is installed, or is being installed or uninstalled. */
export const Module = z
  .object({
    id: ModuleId,
    name: z.string().max(80),
    description: z.string().max(300),
    version,
    state: z.enum(moduleStates),
    health: z.enum(moduleHealths),
    checks: z.array(ModuleCheck).max(21),
    verified: z.boolean(),
    verifiedBy: z.string().max(100).optional(),
    image: z.string().max(600).meta({ description: 'Repository and digest of the running image' }),
    isolation: z.string().max(200).optional().meta({ description: 'How the module is isolated from the platform' }),
    apiBasePath: z.string().max(256),
    warnings: z.array(z.string().max(500)).max(20),
    lastError: z.object({ code: z.enum(moduleErrorCodes), message: z.string().max(1000), at: timestamp }).optional(),
    jobId: id('job').optional().meta({ description: 'The operation in progress' }),
    installedAt: timestamp.optional(),
    updatedAt: timestamp,
  })
  .meta({ id: 'Module' })

/** A module with its navigation slots, background jobs, event types and required permissions. */
export const ModuleDetail = Module.extend({
  navSlots: z.array(NavSlot).max(20).meta({ description: 'Its navigation entries while it runs' }),
  backgroundJobs: z.array(BackgroundJob).max(20),
  events: z.array(EventPattern).max(50).meta({ description: 'The event types that its manifest declares' }),
  permissionsRequired: z.array(z.enum(permissions)).max(permissions.length),
}).meta({ id: 'ModuleDetail' })

const acceptedFields = { jobId: id('job'), moduleId: ModuleId }

export const InstallAccepted = z
  .object({
    ...acceptedFields,
    version,
    status: z.literal('Installing'),
    imageDigest: z.string().max(71),
    verified: z.boolean(),
    events: z.array(EventPattern).max(50).meta({
      description: 'The event types that the module declares; allow them with PUT /organisation/modules/{id}',
    }),
  })
  .meta({ id: 'InstallAccepted' })

export const UninstallAccepted = z
  .object({ ...acceptedFields, status: z.literal('Uninstalling') })
  .meta({ id: 'UninstallAccepted' })

export const CatalogInstallation = z
  .strictObject({ version: version.optional().meta({ description: 'Default: the newest verified release' }) })
  .meta({ id: 'CatalogInstallation' })

export const ImageInstallation = z
  .strictObject({
    imageRef: z.string().min(1).max(512).meta({ example: 'registry.example.com/modules/hello:1.0.0' }),
    manifestUrl: z
      .url({ protocol: /^https?$/ })
      .max(2000)
      .optional()
      .meta({ description: 'Location of module.json; default: in the image' }),
  })
  .meta({ id: 'ImageInstallation' })

/** A module, with the events that it receives from the caller's organisation. */
export const OrganisationModule = z
  .object({
    id: ModuleId,
    name: z.string().max(80),
    enabled: z.boolean().meta({ description: 'Whether the module receives events of the organisation' }),
    events: z.array(EventPattern).max(50).meta({ description: 'The event types that an administrator has allowed' }),
    declaredEvents: z.array(EventPattern).max(50).meta({ description: 'The event types that the manifest declares' }),
  })
  .meta({ id: 'OrganisationModule' })

export const OrganisationModuleChange = z
  .strictObject({
    enabled: z.boolean(),
    events: z
      .array(EventPattern)
      .max(50)
      .optional()
      .meta({ description: 'A subset of declaredEvents; default: all of them if enabled' }),
  })
  .meta({ id: 'OrganisationModuleChange' })

export type OrganisationModule = z.infer<typeof OrganisationModule>
export type OrganisationModuleChange = z.infer<typeof OrganisationModuleChange>
export type Module = z.infer<typeof Module>
export type ModuleDetail = z.infer<typeof ModuleDetail>
export type ModuleCheck = z.infer<typeof ModuleCheck>
export type InstallAccepted = z.infer<typeof InstallAccepted>
export type UninstallAccepted = z.infer<typeof UninstallAccepted>
export type ImageInstallation = z.infer<typeof ImageInstallation>

export const listModules = createRoute({
  method: 'get',
  path: '/api/v1/modules',
  access: 'modules:read',
  tags: ['Modules'],
  summary: 'Installed modules',
  responses: { 200: { description: 'The modules', content: json(listOf(Module, 1000)) } },
  capabilities: ['table:read'],
})

export const getModule = createRoute({
  method: 'get',
  path: '/api/v1/modules/{id}',
  access: 'modules:read',
  tags: ['Modules'],
  summary: 'One installed module',
  request: { params: z.object({ id: pathId('module') }) },
  responses: { 200: { description: 'The module', content: json(ModuleDetail) } },
  errors: ['module_not_found'],
  capabilities: ['table:read'],
})

export const listOrganisationModules = createRoute({
  method: 'get',
  path: '/api/v1/organisation/modules',
  access: 'modules:read',
  tags: ['Modules'],
  summary: 'Installed modules and the events that they receive from your organisation',
  responses: { 200: { description: 'The modules', content: json(listOf(OrganisationModule, 1000)) } },
  capabilities: ['table:read'],
})

export const setOrganisationModule = createRoute({
  method: 'put',
  path: '/api/v1/organisation/modules/{id}',
  access: 'users:admin',
  tags: ['Modules'],
  summary: 'Allow a module to receive events of your organisation, or stop it',
  description: 'A module receives no events of an organisation until an administrator of the organisation allows it.',
  request: { params: z.object({ id: pathId('module') }), body: jsonBody(OrganisationModuleChange) },
  responses: { 200: { description: 'The module', content: json(OrganisationModule) } },
  errors: ['module_not_found'],
  capabilities: ['table:read', 'table:write', 'queue:events'],
})

const installErrors = [
  'module_already_installed',
  'module_operation_in_progress',
  'module_route_taken',
  'limit_reached',
  'manifest_invalid',
  'manifest_id_mismatch',
  'manifest_mismatch',
  'sdk_incompatible',
  'module_signature_unverified',
  'module_isolation_unavailable',
  'image_unreachable',
  'image_not_a_module',
] as const

const installCapabilities = [
  'table:read',
  'table:write',
  'queue:installs',
  'queue:events',
  'secret:registries',
] as const

export const installModule = createRoute({
  method: 'post',
  path: '/api/v1/modules/{id}/install',
  access: 'modules:install',
  tags: ['Modules'],
  summary: 'Install a module of the catalog, or upgrade it',
  request: { params: z.object({ id: pathId('module') }), body: jsonBody(CatalogInstallation) },
  responses: { 202: { description: 'Accepted; poll GET /jobs/{jobId}', content: json(InstallAccepted) } },
  errors: ['module_not_found', 'version_not_available', ...installErrors],
  capabilities: installCapabilities,
})

export const installImage = createRoute({
  method: 'post',
  path: '/api/modules/install',
  access: 'modules:install',
  tags: ['Modules'],
  summary: 'Install a module by its image',
  request: { body: jsonBody(ImageInstallation) },
  responses: { 202: { description: 'Accepted; poll GET /jobs/{jobId}', content: json(InstallAccepted) } },
  errors: ['url_not_allowed', ...installErrors],
  capabilities: installCapabilities,
})

const uninstallRoute = {
  method: 'delete',
  access: 'modules:install',
  tags: ['Modules'],
  summary: 'Uninstall a module',
  request: { params: z.object({ id: pathId('module') }) },
  responses: { 202: { description: 'Accepted; poll GET /jobs/{jobId}', content: json(UninstallAccepted) } },
  errors: ['module_not_found', 'module_not_installed', 'module_operation_in_progress'],
  capabilities: ['table:read', 'table:write', 'queue:installs', 'queue:events'],
} as const

export const uninstallModule = createRoute({ ...uninstallRoute, path: '/api/v1/modules/{id}' })
/** `uninstallModule` at the path that corresponds to `/api/modules/install`. */
export const uninstallImage = createRoute({ ...uninstallRoute, path: '/api/modules/{id}' })
