import type { Command } from 'commander'
import { expectNoBody, unwrap } from '../api/unwrap.ts'
import type { Schemas } from '../api/client.ts'
import { connect } from '../connect.ts'
import { type PrintOptions, showList } from '../print/show.ts'
import { say, write, writeJson } from '../print/write.ts'
import { addCommand, addTableCommand, collectValues } from './add-command.ts'

type Token = Schemas['ApiToken']

export function addTokenCommands(program: Command): void {
  const token = program.command('token').description('your API tokens, for automation')
  addTableCommand(token, 'list', 'list API tokens', { listApiTokens: 'plat token list' }).action(
    async (options: PrintOptions) => {
      await showList(options, await unwrap(connect().GET('/api/v1/users/me/tokens')), [
        { title: 'ID', cellValue: ({ id }) => id },
        { title: 'NAME', cellValue: ({ name }) => name, isFlexible: true },
        { title: 'EXPIRES', cellValue: ({ expiresAt }) => expiresAt, format: 'expiry' },
        { title: 'LAST USED', cellValue: ({ lastUsedAt }) => lastUsedAt, format: 'age' },
        { title: 'PERMISSIONS', cellValue: ({ permissions }) => permissions, isFlexible: true },
      ])
    },
  )
  addCommand(token, 'create <name>', 'create an API token; prints it once', {
    createApiToken: [
      "plat token create 'nightly backup' --permission clusters:read",
      'PLAT_TOKEN=$(plat token create nightly --permission jobs:write --permission clusters:read)',
    ],
  })
    .option('--permission <name>', 'permission; repeatable (default: all of yours)', collectValues)
    .option(
      '--expires-at <time>',
      'expiry time, such as 2027-01-31T00:00:00Z, or never (default: set by the organisation)',
    )
    .action(create)
  addCommand(token, 'delete <id>', 'revoke an API token', {
    deleteApiToken: 'plat token delete tok_01jd8w5k3zr9x2m4c7t6v0b1qa',
  }).action(async (id: string, { json }: PrintOptions) => {
    await expectNoBody(connect().DELETE('/api/v1/users/me/tokens/{id}', { params: { path: { id } } }))
    await (json ? writeJson({ id, deleted: true }) : say(`${id} revoked.`))
  })
}

interface CreateOptions extends PrintOptions {
  permission?: Token['permissions']
  expiresAt?: string
}

async function create(name: string, { permission: permissions, expiresAt, json }: CreateOptions): Promise<void> {
  const body = {
    name,
    ...(permissions && { permissions }),
    ...(expiresAt !== undefined && { expiresAt: expiresAt === 'never' ? null : expiresAt }),
  }
  const createdToken = await unwrap(connect().POST('/api/v1/users/me/tokens', { body }))
  if (json) return writeJson(createdToken)
  say(`${createdToken.id} has ${createdToken.permissions.join(', ')}. The token is shown once:`)
  await write(`${createdToken.token}\n`)
}
