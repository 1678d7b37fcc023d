import type { TokenSet } from '@platform/contract/auth'
import { SetupCompletion } from '@platform/contract/setup'
import { type Origin, system } from '../caller.ts'
import { commit } from '../outbox/commit.ts'
import { now } from '../clock.ts'
import { config } from '../config.ts'
import * as keys from '../db/keys.ts'
import { create, patch, replace, upsert } from '../db/table.ts'
import { platformError, storeContentionError } from '../error.ts'
import { newId, sha256 } from '../id.ts'
import { ipNetworkOf } from '../lib/ip-network.ts'
import { hashPassword } from '../accounts/password.ts'
import { checkNewPassword } from '../accounts/password-rules.ts'
import { type PlatformState, readState } from './state.ts'
import { organisations } from '../accounts/organisation.ts'
import { initialiseWrite } from '../db/offset-list.ts'
import { open } from '../accounts/session.ts'
import { createUserWrites, usersOf } from '../accounts/user.ts'
import { parseBody } from '../lib/validate.ts'

const maxAttempts = 3
const tokenTtlMs = 24 * 3_600_000

const alreadyCompleteError = () => platformError('setup_already_complete', { setupComplete: true })

export async function status(): Promise<{ setupComplete: boolean; wizardStep: string }> {
  if ((await readState()).setupComplete) throw alreadyCompleteError()
  return { setupComplete: false, wizardStep: 'welcome' }
}

/**
 * Creates the platform organisation with its administrator, who is signed in. The transaction also consumes the setup
 * token, so that the token stays valid after an error and only one of several concurrent requests succeeds.
 */
export async function complete(body: unknown, origin: Origin = { address: '' }): Promise<TokenSet> {
  for (let attempt = 0; attempt < maxAttempts; attempt++) {
    const tokens = await tryComplete(body, origin)
    if (tokens !== undefined) return tokens
  }
  throw storeContentionError()
}

async function tryComplete(body: unknown, origin: Origin): Promise<TokenSet | undefined> {
  const state = await readState()
  if (state.setupComplete) throw alreadyCompleteError()
  if (typeof body !== 'object' || body === null || Array.isArray(body)) throw platformError('invalid_json')
  checkToken(state, (body as { initialAdminToken?: unknown }).initialAdminToken)
  const request = parseBody(SetupCompletion, body)
  const { adminPassword: password, adminUsername: username, platformName } = request
  await checkNewPassword({ field: 'adminPassword', password, username, platformName })

  const administrator = newAdministrator(request)
  const session = open(administrator, origin)
  const tokens = await session.tokens()
  const { organisationId, createdAtMs } = administrator
  const writes = [
    patch(
      keys.platform(),
      {
        set: {
          setupComplete: true,
          publicUrl: request.publicUrl,
          platformName: request.platformName,
          timezone: request.timezone,
        },
        remove: ['tokenHash'],
      },
      { setupComplete: { isNot: true }, tokenHash: { is: state.tokenHash } },
    ),
    create(keys.organisation(organisationId), {
      id: organisationId,
      name: request.platformName,
      timezone: request.timezone,
      isPlatform: true,
      createdAtMs,
    }),
    initialiseWrite(organisations, createdAtMs),
    initialiseWrite(usersOf(organisationId), createdAtMs),
    replace(keys.organisationName(request.platformName), { organisationId }),
    upsert(keys.administrators(organisationId), { set: { count: 1 } }),
    ...createUserWrites(administrator, await hashPassword(password, ipNetworkOf(origin.address))),
    ...session.writes,
  ]
  const failure = await commit(system(organisationId, origin.address), {
    writes,
    audit: { action: 'setup.complete', resource: organisationId, detail: `Administrator ${administrator.username}` },
    events: [
      {
        name: 'setup.completed',
        subject: organisationId,
        data: { platformName: request.platformName, organisationId },
      },
    ],
  })
  return failure === undefined ? tokens : undefined
}

// The ids contain `createdAtMs`, because lists are sorted by the time in the id.
const newAdministrator = ({ adminUsername, adminEmail }: SetupCompletion, createdAtMs = now()) => ({
  id: newId('user', createdAtMs),
  organisationId: newId('org', createdAtMs),
  username: adminUsername,
  email: adminEmail,
  roles: ['PlatformAdmin'],
  authProvider: 'local',
  createdAtMs,
})

/** Compares hashes, so that timing does not reveal the token. */
function checkToken(state: PlatformState, token: unknown): void {
  const howToRetrieve = config.PLAT_ADMIN_TOKEN_COMMAND
  if (typeof token !== 'string' || state.tokenHash === undefined || sha256(token) !== state.tokenHash) {
    throw platformError('initial_admin_token_invalid', { howToRetrieve })
  }
  if (now() >= state.tokenMintedAtMs + tokenTtlMs) throw platformError('initial_admin_token_expired', { howToRetrieve })
}
