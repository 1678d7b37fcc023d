import { posting } from '../../test/support/event.ts'
import { ask, type RunningPlatform } from '../one-machine/running.ts'
import { bearer } from '../support/tenant.ts'

const password = 'correct horse battery'
let count = 0

/** Makes a tenant; answers the access tokens of its users, who may do everything in it. */
export async function newTenant(platform: RunningPlatform, users: number): Promise<string[]> {
  const { url, accessToken } = platform
  const name = `tenant-${++count}`
  const { id } = await ask(url, posting('/api/v1/platform/organisations', { name }, bearer(accessToken)))
  const first = await newUser(url, accessToken, { organisationId: id })
  const tokens = [first]
  while (tokens.length < users) tokens.push(await newUser(url, first, {}))
  return tokens
}

async function newUser(url: string, accessToken: string, where: { organisationId?: string }): Promise<string> {
  const username = `user-${++count}`
  const account = { username, email: `${username}@example.com`, password, roles: ['OrgAdmin'], ...where }
  await ask(url, posting('/api/v1/users', account, bearer(accessToken)))
  return (await ask(url, posting('/api/v1/auth/login', { username, password }))).accessToken
}
