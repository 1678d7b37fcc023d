import { type Command, InvalidArgumentError } from 'commander'
import { unwrap } from '../api/unwrap.ts'
import type { Schemas } from '../api/client.ts'
import { connect } from '../connect.ts'
import { readFileOf } from '../jobs/script.ts'
import { askSecret, canAsk, readInput } from '../print/ask.ts'
import { type Shown, showOne } from '../print/show.ts'
import { addCommand, several } from './add-command.ts'

type Request = Schemas['IdentityProviderRequest']
type Role = NonNullable<Request['defaultRole']>

/** Options whose names are the request's own. */
type Settings = Omit<
  Request,
  'type' | 'clientSecret' | 'bindPassword' | 'enabled' | 'roleMappings' | 'caCertificate' | 'scopes'
>

interface Addition extends Shown, Settings {
  map?: { group: string; role: Role }[]
  scope?: string[]
  caFile?: string
  disabled?: true
  secretStdin?: true
}

const notes = `
A provider of the same type and place is changed: its secret stays unless another is given, all else becomes as the options say.
The secret comes from standard input (--secret-stdin), from PLAT_IDP_SECRET, or is asked for.`

/** `plat idp add …`: a command for each type, with the options of that type. */
export function addProviderCommands(add: Command): void {
  const oidc = addition(add, 'oidc', 'OIDC', 'any provider that speaks OpenID Connect', [
    'plat idp add oidc --issuer https://id.example.com --client-id platform --map platform-operators=Operator',
  ]).requiredOption('--issuer <url>', 'the issuer, as it calls itself')
  withClaims(withClient(oidc))
  const source = addition(add, 'open-source-idp', 'OpenSourceIdp', 'a realm of an identity server', [
    'plat idp add open-source-idp --base-url https://id.example.com --realm acme --client-id platform',
  ])
    .requiredOption('--base-url <url>', 'the address of the server')
    .requiredOption('--realm <name>', 'the realm')
  withClaims(withClient(source))
  const cloud = addition(add, 'cloud-directory', 'CloudDirectory', 'a tenant of a cloud directory', [
    'plat idp add cloud-directory --tenant-id 0aa2ef10-6a2f-4be4-8b0b-3ef5f6c6a7d1 --client-id 6731de76-14a6-49ae-97bc-6eba6914391e',
  ])
    .requiredOption('--tenant-id <id>', 'the tenant')
    .option('--authority-host <url>', 'where the directory is, if not where it usually is')
    .option('--groups-claim <name>', 'the claim that names groups')
  withClient(cloud)
  withDirectory(
    addition(add, 'ldap', 'LDAP', 'a directory that is asked by LDAP', [
      'plat idp add ldap --url ldaps://ldap.example.com --bind-dn cn=platform,dc=acme --user-search-base ou=people,dc=acme',
    ]),
  )
}

const addition = (
  add: Command,
  name: string,
  type: Request['type'],
  description: string,
  examples: readonly string[],
): Command =>
  addCommand(add, name, description, examples)
    .option('--display-name <name>', 'what people choose at sign-in')
    .option('--map <group=role>', 'the role that members of a group get; several times for several', mapping)
    .option('--default-role <role>', 'of whom no group maps; Viewer if missing')
    .option('--disabled', 'nobody signs in with it; those who did are signed out')
    .option('--secret-stdin', 'read the secret from standard input')
    .addHelpText('after', notes)
    .action((options: Addition) => configure(type, options))

const withClient = (command: Command): Command =>
  command.requiredOption('--client-id <id>', 'what the provider calls the platform')

const withClaims = (command: Command): Command =>
  command
    .option('--scope <scope>', 'what to ask for; several times for several', several)
    .option('--username-claim <name>', 'the claim that names the user')
    .option('--email-claim <name>', 'the claim that tells the e-mail address')
    .option('--groups-claim <name>', 'the claim that names groups')

const withDirectory = (command: Command): Command =>
  command
    .requiredOption('--url <url>', 'ldaps://host, or ldap://host with --start-tls')
    .requiredOption('--bind-dn <dn>', 'whom the platform searches as')
    .requiredOption('--user-search-base <dn>', 'below what users are')
    .option('--start-tls', 'encrypt the connection before anything is said')
    .option('--ca-file <file>', 'certificates (PEM) to trust beside the usual ones')
    .option('--user-login-attribute <name>', 'the attribute that people sign in with; uid if missing')
    .option('--group-search-base <dn>', 'below what groups are')
    .option('--group-member-attribute <name>', 'the attribute of a group that names its members; member if missing')

/** A group may hold equals signs, a role does not. */
function mapping(text: string, before: Addition['map'] = []): NonNullable<Addition['map']> {
  const [, group, role] = /^(.+)=(\w+)$/.exec(text) ?? []
  if (group === undefined || !isRole(role))
    throw new InvalidArgumentError('It must be group=role, such as ops=Operator.')
  return [...before, { group, role }]
}

const roles: readonly Role[] = ['PlatformAdmin', 'OrgAdmin', 'ClusterAdmin', 'Operator', 'Viewer', 'Auditor']
const isRole = (text: string | undefined): text is Role => roles.some((role) => role === text)

async function configure(type: Request['type'], options: Addition): Promise<void> {
  const { json, map, scope, caFile, disabled, secretStdin, ...settings } = options
  const secret = await secretOf(secretStdin)
  const body: Request = {
    type,
    ...settings,
    enabled: !disabled,
    ...(map && { roleMappings: map }),
    ...(scope && { scopes: scope }),
    ...(caFile !== undefined && { caCertificate: await readFileOf(caFile) }),
    ...(secret !== '' && { [type === 'LDAP' ? 'bindPassword' : 'clientSecret']: secret }),
  }
  const provider = await unwrap(connect().POST('/api/v1/platform/identity/providers', { body }))
  await showOne({ ...(json && { json }) }, provider)
}

/** Nothing: the one that the platform has stays. */
async function secretOf(isFromInput: true | undefined): Promise<string> {
  if (isFromInput) return (await readInput()).replace(/\r?\n$/, '')
  const told = process.env['PLAT_IDP_SECRET']
  if (told !== undefined) return told
  return canAsk() ? askSecret('Secret (nothing keeps the one there is): ') : ''
}
