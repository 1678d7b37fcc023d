import * as z from 'zod'
import { line } from './common.ts'
import { createRoute, json, jsonBody } from './endpoint.ts'
import { TokenSet } from './auth.ts'

/** Progress of setup. `wizardStep` is present only while setup is incomplete. */
export const SetupStatus = z
  .object({ setupComplete: z.boolean(), wizardStep: z.string().max(30).optional() })
  .meta({ id: 'SetupStatus' })

const isTimezone = (name: string): boolean => {
  // `Intl` also accepts offsets such as +01:00, which are not time zone names.
  if (!/^[A-Za-z]/.test(name)) return false
  try {
    Intl.DateTimeFormat('en', { timeZone: name })
    return true
  } catch {
    return false
  }
}

/** The public address of the portal, used in redirect URIs. HTTPS is required, because the cookies are `Secure`. */
export const publicUrl = z
  .string()
  .max(500)
  .refine((text) => URL.canParse(text), { error: 'must be a URL, such as https://platform.example.com', abort: true })
  .refine((text) => URL.parse(text)?.protocol === 'https:', { error: 'must begin with https://', abort: true })
  .refine((text) => !/[@?#]/.test(text), { error: 'must have no user, query or fragment', abort: true })
  .refine((text) => URL.parse(text)?.pathname === '/', 'must have no path: the portal is served at the root')
  .meta({
    format: 'uri',
    description: 'Portal URL without a path; used for OIDC redirect URIs',
    example: 'https://platform.example.com',
  })

/** A password of 8 to 1024 characters, without composition rules. */
export const password = z.string().min(8).max(1024).meta({
  format: 'password',
  description: 'Not a common password, the user name, the name of the platform, spaces or one repeated character',
  example: 'correct horse battery',
})

/** A user name for sign-in, with letters of any writing system. The comparison is case-insensitive. */
export const username = z
  .string()
  .trim()
  .normalize('NFKC')
  .max(64)
  // The OpenAPI document has no pattern for it, because not every OpenAPI tool supports \p{L}.
  .refine(
    (name) => /^[\p{L}\p{N}][\p{L}\p{M}\p{N}._@+-]*$/u.test(name),
    'must be 1 to 64 letters, digits or . _ @ + -, and start with a letter or digit',
  )
  .meta({
    description:
      '1 to 64 letters or digits of any writing system, or . _ @ + -. Stored in the form NFKC. Names are equal if Unicode’s case conversion makes them equal: `Straße` equals `STRASSE`',
    example: 'admin',
  })

const atom = String.raw`[\p{L}\p{M}\p{N}!#$%&'*+/=?^_{|}~\x60-]+`
const label = String.raw`(?!-)[\p{L}\p{M}\p{N}-]+`
const emailPattern = new RegExp(`^${atom}(?:\\.${atom})*@(?:${label}\\.)+(?!-)[\\p{L}\\p{M}\\p{N}-]{2,}$`, 'u')

/** An e-mail address, which may be internationalised (RFC 6531). */
export const email = z
  .string()
  .trim()
  .normalize('NFC')
  .max(254)
  .refine((address) => emailPattern.test(address), 'must be an e-mail address')
  .meta({ format: 'idn-email', example: 'ada@example.com' })

export const SetupCompletion = z
  .strictObject({
    platformName: line(1, 100).meta({ example: 'Acme Platform' }),
    publicUrl,
    timezone: z
      .string()
      .max(64)
      .refine(isTimezone, 'must be an IANA timezone identifier')
      .meta({ example: 'Europe/Berlin' }),
    adminUsername: username,
    adminEmail: email.meta({ example: 'admin@example.com' }),
    adminPassword: password,
    initialAdminToken: z.string().min(1).max(200).meta({ description: 'One-time token, valid for 24 hours' }),
  })
  .meta({ id: 'SetupCompletion' })

export type SetupCompletion = z.infer<typeof SetupCompletion>

export const getSetupStatus = createRoute({
  method: 'get',
  path: '/api/v1/setup/status',
  access: 'public',
  tags: ['Setup'],
  summary: 'Whether first-run setup is complete',
  responses: { 200: { description: 'Setup is not complete yet', content: json(SetupStatus) } },
  errors: ['setup_already_complete'],
  capabilities: ['table:read'],
})

export const completeSetup = createRoute({
  method: 'post',
  path: '/api/v1/setup/complete',
  access: 'public',
  tags: ['Setup'],
  summary: 'Create the platform organisation and its administrator',
  description:
    'Checks in this order: already complete, JSON object, token, fields. A rejected request does not consume the token.',
  request: { body: jsonBody(SetupCompletion) },
  validatesBody: true,
  responses: { 200: { description: 'Signed in as the new administrator', content: json(TokenSet) } },
  errors: ['setup_already_complete', 'initial_admin_token_invalid', 'initial_admin_token_expired'],
  capabilities: ['table:read', 'table:write', 'secret:access-keys', 'queue:events'],
})
