import * as z from 'zod'
import { createRoute, json, jsonBody } from './endpoint.ts'
import { publicUrl } from './setup.ts'

/** Settings of the platform, initially those of the setup. */
export const PlatformSettings = z
  .object({
    platformName: z.string().max(100).meta({ description: 'Name of the platform', example: 'Acme Platform' }),
    publicUrl: z.string().max(500).meta({
      description: 'Address of the portal, to which identity providers redirect',
      example: 'https://platform.example.com',
    }),
    timezone: z.string().max(64).meta({ description: 'IANA identifier', example: 'Europe/Berlin' }),
  })
  .meta({ id: 'PlatformSettings' })

export const PlatformSettingsUpdate = z.strictObject({ publicUrl }).meta({ id: 'PlatformSettingsUpdate' })

export type PlatformSettings = z.infer<typeof PlatformSettings>
export type PlatformSettingsUpdate = z.infer<typeof PlatformSettingsUpdate>

const settings = { path: '/api/v1/platform/settings', access: 'platform:admin', tags: ['Setup'] } as const

export const getPlatformSettings = createRoute({
  ...settings,
  method: 'get',
  summary: 'The settings of the platform',
  responses: { 200: { description: 'The settings', content: json(PlatformSettings) } },
  capabilities: ['table:read'],
})

export const updatePlatformSettings = createRoute({
  ...settings,
  method: 'patch',
  summary: 'Change the public address',
  description:
    'Redirect addresses of identity providers follow at once: register them at the providers. Sign-ins that have begun must be repeated. Relay commands and the check of the origin of browsers follow within a minute. Sessions and enrolled relays continue.',
  request: { body: jsonBody(PlatformSettingsUpdate) },
  responses: { 200: { description: 'The new settings', content: json(PlatformSettings) } },
  errors: ['conflict'],
  capabilities: ['table:read', 'table:write', 'queue:events'],
})
