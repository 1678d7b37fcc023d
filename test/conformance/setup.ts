import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { answered, refusedFields } from './support/answer.ts'
import { entriesOf } from './support/audit.ts'
import type { Client } from './support/client.ts'
import type { Options } from './support/options.ts'
import type { Journey, Journeys, Platform } from './support/platform.ts'

const run = promisify(execFile)
const status = '/api/v1/setup/status'
const complete = '/api/v1/setup/complete'

const completion = ({ username, password }: Options) => ({
  platformName: 'Conformance',
  publicUrl: 'https://platform.example.com',
  timezone: 'Europe/Berlin',
  adminUsername: username,
  adminEmail: 'conformance@example.com',
  adminPassword: password,
})

const isSetUp = async ({ anonymous }: Platform): Promise<boolean> => (await anonymous.get(status)).status === 403

/** A journey that only a platform which is not set up can prove. Another run may set it up meanwhile. */
const beforeSetup =
  (journey: Journey): Journey =>
  async (platform, report) => {
    if (await isSetUp(platform)) return report.skip('the platform is set up')
    try {
      await journey(platform, report)
    } catch (error) {
      if (error instanceof assert.AssertionError || !(await isSetUp(platform))) throw error
      report.skip('another run has set the platform up')
    }
  }

/** The token that completes setup. The platform's own command retrieves it: only where that runs on this machine. */
async function initialAdminToken(anonymous: Client, options: Options): Promise<string> {
  const { initialAdminToken: given, isLocal } = options
  if (given !== undefined) return given
  assert.ok(isLocal, 'Set PLAT_INITIAL_ADMIN_TOKEN: the platform is on another machine.')
  const { howToRetrieve } = answered(await anonymous.post(complete, {}), 422, 'initial_admin_token_invalid')
  const { stdout } = await run('sh', ['-c', options.howToRetrieve ?? howToRetrieve])
  return stdout.trim()
}

const openSetup: Journeys = {
  'the status names the step of the wizard': async ({ anonymous }) => {
    assert.deepEqual(answered(await anonymous.get(status), 200), { setupComplete: false, wizardStep: 'welcome' })
  },

  'what is no JSON object is refused first': async ({ anonymous }) => {
    for (const json of [[], null, 'text', 7]) answered(await anonymous.post(complete, json), 400, 'invalid_json')
  },

  'a missing or wrong initial admin token is refused, with the command that retrieves it': async ({ anonymous }) => {
    for (const json of [
      {},
      { initialAdminToken: '' },
      { initialAdminToken: 7 },
      { initialAdminToken: 'admin.wrong' },
    ]) {
      const { howToRetrieve } = answered(await anonymous.post(complete, json), 422, 'initial_admin_token_invalid')
      assert.match(howToRetrieve, /\S/)
    }
  },

  'a refused field leaves the token good, and completing setup signs the administrator in': async ({
    anonymous,
    options,
  }) => {
    const body = { ...completion(options), initialAdminToken: await initialAdminToken(anonymous, options) }
    const wrong = { adminPassword: 'short', publicUrl: 'http://platform.example.com', timezone: 'Nowhere/Land' }
    for (const [name, value] of Object.entries(wrong)) {
      assert.deepEqual(refusedFields(await anonymous.post(complete, { ...body, [name]: value })), [`body /${name}`])
    }
    const { accessToken, expiresIn, tokenType } = answered(await anonymous.post(complete, body), 200)
    assert.deepEqual({ expiresIn, tokenType }, { expiresIn: 900, tokenType: 'Bearer' })
    const { username, roles } = answered(await anonymous.withToken(accessToken).get('/api/v1/auth/me'), 200)
    assert.deepEqual({ username, roles }, { username: options.username, roles: ['PlatformAdmin'] })
  },
}

const opened = Object.entries(openSetup).map(([promise, journey]) => [`before: ${promise}`, beforeSetup(journey)])

export const setup: Journeys = {
  ...Object.fromEntries(opened),

  'after: both endpoints answer 403 and that setup is complete, whatever they are sent': async ({
    anonymous,
    options,
  }) => {
    const answers = [await anonymous.get(status)]
    for (const json of [undefined, [], {}, { initialAdminToken: 'admin.wrong' }, completion(options)]) {
      answers.push(await anonymous.post(complete, json))
    }
    for (const answer of answers) assert.equal(answered(answer, 403, 'setup_already_complete').setupComplete, true)
  },

  'after: it is on record': async ({ admin }) => {
    await entriesOf(await admin, 'action=setup.complete', 1)
  },
}
