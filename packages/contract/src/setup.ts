import * as z from 'zod'
import { line } from './common.ts'
import { endpoint } from './endpoint.ts'
import { TokenSet } from './auth.ts'

/** Section 2; `wizardStep` is present only while setup is incomplete. */
export const SetupStatus = z
  .object({ setupComplete: z.boolean(), wizardStep: z.string().max(30).optional() })
  .meta({ id: 'SetupStatus' })

const isTimezone = (name: string): boolean => {
  // Offsets such as +01:00 are time zones to Intl, but no names.
  if (!/^[A-Za-z]/.test(name)) return false
  try {
    Intl.DateTimeFormat('en', { timeZone: name })
    return true
  } catch {
    return false
  }
}

/** Redirect addresses are made of it: it must be an address and nothing else. */
const isPlainUrl = (text: string): boolean => URL.canParse(text) && !/[@?#]/.test(text)

/** A password: 8 to 1024 characters, no composition rules (D17). */
export const password = z.string().min(8).max(1024).meta({ format: 'password', example: 'correct horse battery' })

/** A user name: what a person types to sign in; compared without regard to case. */
export const username = z
  .string()
  .trim()
  .max(64)
  .regex(/^[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}$/, 'must be 1 to 64 letters, digits or . _ @ + -')
  .meta({ example: 'admin' })

/** Setup completion request of section 2. */
export const SetupCompletion = z
  .object({
    platformName: line(1, 100).meta({ example: 'Acme Platform' }),
    publicUrl: z
      .url({ protocol: /^https$/ })
      .max(500)
      .refine(isPlainUrl, 'must hold no user, query or fragment')
      .meta({ description: 'Portal URL; used for OIDC redirect URIs', example: 'https://platform.example.com' }),
    timezone: z
      .string()
      .max(64)
      .refine(isTimezone, 'must be an IANA timezone identifier')
      .meta({ example: 'Europe/Berlin' }),
    adminUsername: username,
    adminEmail: z.email().max(254).meta({ example: 'admin@example.com' }),
    adminPassword: password,
    initialAdminToken: z.string().min(1).max(200).meta({ description: 'One-time token; lives 24 hours' }),
  })
  .meta({ id: 'SetupCompletion' })

export type SetupCompletion = z.infer<typeof SetupCompletion>

export const getSetupStatus = endpoint({
  method: 'GET',
  path: '/api/v1/setup/status',
  access: 'public',
  tag: 'Setup',
  summary: 'Whether first-run setup is done',
  responses: { 200: { description: 'Setup is not complete yet', schema: SetupStatus } },
  fails: ['setup_already_complete'],
  uses: ['table:read'],
})

export const completeSetup = endpoint({
  method: 'POST',
  path: '/api/v1/setup/complete',
  access: 'public',
  tag: 'Setup',
  summary: 'Create the platform organisation and its administrator',
  description:
    'Checks in this order: already complete, JSON object, token, fields (D2). A refused request never burns the token.',
  request: { body: SetupCompletion, bodyCheckedByVerb: true },
  responses: { 200: { description: 'Signed in as the new administrator', schema: TokenSet } },
  fails: ['setup_already_complete', 'initial_admin_token_invalid', 'initial_admin_token_expired'],
  uses: ['table:read', 'table:write', 'secret:signing-keys', 'queue:events'],
})
