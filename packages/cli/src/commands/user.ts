import type { Command } from 'commander'
import { expectNoBody, unwrap } from '../api/unwrap.ts'
import type { Api, Schemas } from '../api/client.ts'
import { type Extent, readList } from '../api/pages.ts'
import { connect } from '../connect.ts'
import { CliError } from '../exit.ts'
import { confirm } from '../print/ask.ts'
import { type PrintOptions, showList, showOne } from '../print/show.ts'
import { cellOf } from '../print/table.ts'
import { say, writeJson } from '../print/write.ts'
import { newPassword } from '../session/password.ts'
import { addCommand, addListCommand, collectValues } from './add-command.ts'

type User = Schemas['UserProfile']
type Role = Schemas['UserCreation']['roles'][number]

export function addUserCommands(program: Command): void {
  const user = program.command('user').description('users of the organisation')
  addListCommand(user, 'list', 'list users', { listUsers: 'plat user list' }).action(
    async ({ limit, all, ...options }: PrintOptions & Extent) =>
      showList(options, await listUsers(connect(), { limit, ...(all && { all }) }), [
        { title: 'ID', cellValue: ({ id }) => id, isWide: true },
        { title: 'USERNAME', cellValue: ({ username }) => username, isFlexible: 'middle' },
        { title: 'NAME', cellValue: ({ displayName }) => displayName, isFlexible: true, isWide: true },
        { title: 'EMAIL', cellValue: ({ email }) => email, isFlexible: 'middle' },
        { title: 'ROLES', cellValue: ({ roles }) => roles, isFlexible: true },
        {
          title: 'STATUS',
          cellValue: ({ suspendedAt }) => (suspendedAt === undefined ? 'Active' : 'Suspended'),
          format: 'state',
        },
        { title: 'CREATED', cellValue: ({ createdAt }) => createdAt, format: 'age' },
      ]),
  )
  addCommand(user, 'get <user>', 'show a user by name or id', { getUser: 'plat user get ada' }).action(
    async (nameOrId: string, options: PrintOptions) => showOne(options, await findUser(connect(), nameOrId)),
  )
  addCommand(user, 'create <username>', 'create a user; prompts for the password', {
    createUser: [
      'plat user create ada --email ada@example.com --role Operator',
      'plat user create grace --email grace@example.com --role Operator --password-stdin < password.txt',
    ],
  })
    .requiredOption('--email <address>', 'e-mail address')
    .requiredOption('--role <role>', 'role; repeatable', collectValues)
    .option('--organisation <id>', 'create the first user of another organisation')
    .option('--password-stdin', 'read the password from standard input (default: PLAT_NEW_PASSWORD or prompt)')
    .action(create)
  addCommand(user, 'update <user>', 'change e-mail or roles', {
    updateUser: 'plat user update ada --role ClusterAdmin',
  })
    .option('--email <address>', 'e-mail address')
    .option('--role <role>', 'role, replaces the current ones; repeatable', collectValues)
    .action(update)
  addCommand(user, 'delete <user>', 'remove a user', { deleteUser: 'plat user delete ada' })
    .option('--yes', 'skip the confirmation')
    .action(remove)
}

const listUsers = (api: Api, extent: Extent) =>
  readList(extent, (query) => unwrap(api.GET('/api/v1/users', { params: { query } })))

/** Reads the names of at most 20 users, by id. Users that the caller cannot read are omitted. */
export async function readUserNames(api: Api, ids: readonly string[]): Promise<Map<string, string>> {
  const read = [...new Set(ids)].filter((id) => id.startsWith('user_')).slice(0, maxNames)
  const foundUsers = await Promise.all(
    read.map(async (id) => (await api.GET('/api/v1/users/{id}', { params: { path: { id } } })).data),
  )
  return new Map(foundUsers.flatMap((user) => (user === undefined ? [] : [[user.id, user.username] as const])))
}

const maxNames = 20

export async function findUser(api: Api, nameOrId: string): Promise<User> {
  if (nameOrId.startsWith('user_')) return unwrap(api.GET('/api/v1/users/{id}', { params: { path: { id: nameOrId } } }))
  const { items } = await listUsers(api, { limit: Infinity, all: true })
  const foundUser = items.find(({ username }) => foldCase(username) === foldCase(nameOrId))
  if (foundUser === undefined) throw new CliError('refused', `No user named ${cellOf(nameOrId)}. See: plat user list`)
  return foundUser
}

/** Converts a name for a case-insensitive comparison, in the same way as the platform. */
const foldCase = (name: string): string => name.normalize('NFKC').toLowerCase().toUpperCase().normalize('NFC')

interface CreateOptions extends PrintOptions {
  email: string
  role: Role[]
  organisation?: string
  passwordStdin?: true
}

async function create(username: string, options: CreateOptions): Promise<void> {
  const { email, role: roles, organisation: organisationId } = options
  const password = await newPassword(options.passwordStdin)
  const body = { username, email, roles, password, ...(organisationId !== undefined && { organisationId }) }
  await showOne(options, await unwrap(connect().POST('/api/v1/users', { body })))
}

interface UpdateOptions extends PrintOptions {
  email?: string
  role?: Role[]
}

async function update(nameOrId: string, { email, role: roles, ...options }: UpdateOptions): Promise<void> {
  if (email === undefined && roles === undefined) throw new CliError('usage', 'Specify a change: --email or --role.')
  const api = connect()
  const { id } = await findUser(api, nameOrId)
  const body = { ...(email !== undefined && { email }), ...(roles && { roles }) }
  await showOne(options, await unwrap(api.PATCH('/api/v1/users/{id}', { params: { path: { id } }, body })))
}

async function remove(nameOrId: string, { json, yes }: PrintOptions & { yes?: true }): Promise<void> {
  const api = connect()
  const { id, username } = await findUser(api, nameOrId)
  await confirm(`Remove ${cellOf(username)} (${id})?`, { ...(yes && { yes }) })
  await expectNoBody(api.DELETE('/api/v1/users/{id}', { params: { path: { id } } }))
  await (json ? writeJson({ id, deleted: true }) : say(`${username} removed.`))
}
