import assert from 'node:assert/strict'
import { expectStatus, invalidFields } from './answer.ts'
import { connect, type Options, type Platform } from './platform.ts'

export const setupStatusPath = '/api/v1/setup/status'
export const completeSetupPath = '/api/v1/setup/complete'

export const setupBody = ({ username, password }: Options) => ({
  platformName: 'Conformance',
  publicUrl: 'https://platform.example.com',
  timezone: 'Europe/Berlin',
  adminUsername: username,
  adminEmail: 'conformance@example.com',
  adminPassword: password,
})

/**
 * Completes setup once per platform and checks its rules. If setup is complete, the credentials must be valid.
 * `retrieve` runs the command that prints the initial admin token.
 */
export async function completeSetup(options: Options, retrieve: (command: string) => Promise<string>): Promise<void> {
  const platform = await connect(options)
  const { anonymous } = platform
  const status = await anonymous.get(setupStatusPath)
  if (status.status === 403) return checkCredentials(platform)
  assert.deepEqual(expectStatus(status, 200), { setupComplete: false, wizardStep: 'welcome' })
  for (const json of [[], null, 'text', 7])
    expectStatus(await anonymous.post(completeSetupPath, json), 400, 'invalid_json')
  const commands = new Set<string>()
  for (const json of [{}, ...['', 7, 'admin.invalid'].map((initialAdminToken) => ({ initialAdminToken }))]) {
    const rejection = await anonymous.post(completeSetupPath, json)
    commands.add(expectStatus(rejection, 422, 'initial_admin_token_invalid').howToRetrieve)
  }
  const [command = '', ...others] = commands
  assert.match(command, /\S/)
  assert.deepEqual(others, [])
  const body = { ...setupBody(options), initialAdminToken: (await retrieve(command)).trim() }
  const invalidValues = { adminPassword: 'short', publicUrl: 'http://platform.example.com', timezone: 'Nowhere/Land' }
  for (const [name, value] of Object.entries(invalidValues)) {
    assert.deepEqual(invalidFields(await anonymous.post(completeSetupPath, { ...body, [name]: value })), [
      `body /${name}`,
    ])
  }
  const { accessToken, expiresIn, tokenType } = expectStatus(await anonymous.post(completeSetupPath, body), 200)
  assert.deepEqual({ expiresIn, tokenType }, { expiresIn: 900, tokenType: 'Bearer' })
  const { username, roles } = expectStatus(await anonymous.withToken(accessToken).get('/api/v1/auth/me'), 200)
  assert.deepEqual({ username, roles }, { username: options.username, roles: ['PlatformAdmin'] })
}

async function checkCredentials({ anonymous, options: { username, password } }: Platform): Promise<void> {
  if ((await anonymous.post('/api/v1/auth/login', { username, password })).status !== 401) return
  throw new Error(
    `The platform is set up, and ${username} cannot sign in. ` +
      'Set PLAT_CONFORMANCE_USERNAME and PLAT_CONFORMANCE_PASSWORD to the credentials of its administrator.',
  )
}
