import { type Command, InvalidArgumentError, Option } from 'commander'
import { unwrap } from '../api/unwrap.ts'
import type { Schemas } from '../api/client.ts'
import { connect } from '../connect.ts'
import { readText } from '../jobs/script.ts'
import { askSecret, canAsk, readInput } from '../print/ask.ts'
import { type PrintOptions, showOne } from '../print/show.ts'
import { addCommand, collectValues, type Examples } from './add-command.ts'

type Request = Schemas['IdentityProviderRequest']
type Role = NonNullable<Request['defaultRole']>

// The option names equal the field names of the request.
type Settings = Omit<
  Request,
  'type' | 'clientSecret' | 'bindPassword' | 'enabled' | 'roleMappings' | 'caCertificate' | 'scopes'
>

interface AddOptions extends PrintOptions, Settings {
  map?: { group: string; role: Role }[]
  scope?: string[]
  caFile?: string
  disabled?: true
  secretStdin?: true
}

const notesText = `
Updates the provider of the same type and address. Its secret is kept unless you provide a new one; all other settings are replaced.
The secret is read from standard input (--secret-stdin), PLAT_IDP_SECRET or a prompt.`

/** Adds one command per provider type to `plat idp add`, with the options of the type. */
export function addProviderCommands(add: Command): void {
  const oidc = addProviderCommand(add, 'oidc', 'OIDC', 'any OpenID Connect provider', {
    configureProvider: [
      'plat idp add oidc --issuer https://id.example.com --client-id platform',
      'plat idp add oidc --issuer https://id.example.com --client-id platform --map platform-operators=Operator',
    ],
  }).requiredOption('--issuer <url>', 'issuer URL')
  withClaims(withClient(oidc))
  const source = addProviderCommand(
    add,
    'open-source-idp',
    'OpenSourceIdp',
    'a realm of an open-source identity provider',
    ['plat idp add open-source-idp --base-url https://id.example.com --realm acme --client-id platform'],
  )
    .requiredOption('--base-url <url>', 'server URL')
    .requiredOption('--realm <name>', 'the realm')
  withClaims(withClient(source))
  const cloud = addProviderCommand(add, 'cloud-directory', 'CloudDirectory', 'a tenant of a cloud directory', [
    'plat idp add cloud-directory --tenant-id 0aa2ef10-6a2f-4be4-8b0b-3ef5f6c6a7d1 --client-id 6731de76-14a6-49ae-97bc-6eba6914391e',
  ])
    .requiredOption('--tenant-id <id>', 'the tenant')
    .option('--authority-host <url>', 'directory host, if not the default')
    .option('--groups-claim <name>', 'claim with the groups')
  withClient(cloud)
  withDirectory(
    addProviderCommand(add, 'ldap', 'LDAP', 'an LDAP directory', [
      'plat idp add ldap --url ldaps://ldap.example.com --bind-dn cn=platform,dc=acme --user-search-base ou=people,dc=acme',
    ]),
  )
}

const addProviderCommand = (
  add: Command,
  name: string,
  type: Request['type'],
  description: string,
  examples: Examples,
): Command =>
  addCommand(add, name, description, examples)
    .option('--display-name <name>', 'name on the sign-in page')
    .option('--map <group=role>', 'role for members of a group; repeatable', parseMapping)
    .option('--default-role <role>', 'role for users without a mapped group (default: Viewer)')
    .option('--disabled', 'add the provider disabled; users cannot sign in with it')
    .option('--secret-stdin', 'read the secret from standard input')
    .addHelpText('after', notesText)
    .action((options: AddOptions) => configure(type, options))

const withClient = (command: Command): Command =>
  command.requiredOption('--client-id <id>', 'client id at the provider')

const withClaims = (command: Command): Command =>
  command
    .option('--scope <scope>', 'scope to request; repeatable', collectValues)
    .option('--username-claim <name>', 'claim with the username')
    .option('--email-claim <name>', 'claim with the e-mail address')
    .option('--groups-claim <name>', 'claim with the groups')

const withDirectory = (command: Command): Command =>
  command
    .requiredOption('--url <url>', 'ldaps://host, or ldap://host with --start-tls')
    .requiredOption('--bind-dn <dn>', 'DN of the service account')
    .requiredOption('--user-search-base <dn>', 'base DN of users')
    .option('--start-tls', 'use StartTLS')
    .option('--ca-file <file>', 'trusted certificates (PEM), in addition to public ones')
    .option('--user-login-attribute <name>', 'login attribute of users (default: uid)')
    .option('--group-search-base <dn>', 'base DN of groups')
    .option('--group-member-attribute <name>', 'member attribute of groups (default: member)')
    .addOption(
      new Option('--nested-groups <mode>', 'resolve groups of groups (default: none)').choices([
        'none',
        'matchingRule',
        'recursive',
      ]),
    )

// A group name can contain equals signs; a role cannot.
function parseMapping(text: string, before: AddOptions['map'] = []): NonNullable<AddOptions['map']> {
  const [, group, role] = /^(.+)=(\w+)$/.exec(text) ?? []
  if (group === undefined || !isRole(role)) throw new InvalidArgumentError('Use group=role, such as ops=Operator.')
  return [...before, { group, role }]
}

const roles: readonly Role[] = ['PlatformAdmin', 'OrgAdmin', 'ClusterAdmin', 'Operator', 'Viewer', 'Auditor']
const isRole = (text: string | undefined): text is Role => roles.some((role) => role === text)

async function configure(type: Request['type'], options: AddOptions): Promise<void> {
  const { json, map, scope, caFile, disabled, secretStdin, ...settings } = options
  const secret = await secretOf(secretStdin)
  const body: Request = {
    type,
    ...settings,
    enabled: !disabled,
    ...(map && { roleMappings: map }),
    ...(scope && { scopes: scope }),
    ...(caFile !== undefined && { caCertificate: await readText(caFile) }),
    ...(secret !== '' && { [type === 'LDAP' ? 'bindPassword' : 'clientSecret']: secret }),
  }
  const provider = await unwrap(connect().POST('/api/v1/platform/identity/providers', { body }))
  await showOne({ ...(json && { json }) }, provider)
}

// An empty secret keeps the stored one.
async function secretOf(isFromInput: true | undefined): Promise<string> {
  if (isFromInput) return (await readInput()).replace(/\r?\n$/, '')
  const secret = process.env['PLAT_IDP_SECRET']
  if (secret !== undefined) return secret
  return canAsk() ? askSecret('Secret (empty keeps the stored one): ') : ''
}
