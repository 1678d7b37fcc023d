import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isListening, waitFor } from './wait-for.ts'
import { outputOf } from './installed-programs.ts'
import { Program } from './program.ts'
import { temporaryFolder } from './temporary-folder.ts'

/** LDAP server for tests: Debian's slapd. By default, its certificate names only `localhost`. */

export const suffix = 'dc=acme,dc=test'
export const usersDn = `ou=people,${suffix}`
export const groupsDn = `ou=groups,${suffix}`
/** The service account may search below this entry, but not read it. */
export const hiddenDn = `ou=hidden,${suffix}`
export const serviceAccount = { bindDn: `cn=service,${suffix}`, bindPassword: 'service password' }
export const rootAccount = { bindDn: `cn=admin,${suffix}`, bindPassword: 'root password' }

export interface Certificates {
  ca: string
  cert: string
  key: string
}

export async function createCertificates(folder: string, altName = 'DNS:localhost', days = 1): Promise<Certificates> {
  const file = (name: string) => join(folder, name)
  const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
  const ca = ['-x509', '-days', '1', '-subj', '/CN=Test authority', '-keyout', file('ca.key'), '-out', file('ca.pem')]
  await outputOf('openssl', 'req', ...newKey, ...ca)
  const names = ['-subj', '/CN=localhost', '-addext', `subjectAltName=${altName}`]
  const request = [...names, '-CA', file('ca.pem'), '-CAkey', file('ca.key'), '-x509', '-days', String(days)]
  await outputOf('openssl', 'req', ...newKey, ...request, '-keyout', file('key.pem'), '-out', file('cert.pem'))
  const [caText, cert, key] = await Promise.all(
    ['ca.pem', 'cert.pem', 'key.pem'].map((name) => readFile(file(name), 'utf8')),
  )
  return { ca: caText ?? '', cert: cert ?? '', key: key ?? '' }
}

const configuration = (folder: string) => `
${['core', 'cosine', 'inetorgperson', 'nis'].map((name) => `include /etc/ldap/schema/${name}.schema`).join('\n')}
pidfile ${folder}/slapd.pid
modulepath /usr/lib/ldap
moduleload back_mdb
moduleload memberof
TLSCACertificateFile ${folder}/ca.pem
TLSCertificateFile ${folder}/cert.pem
TLSCertificateKeyFile ${folder}/key.pem
database mdb
suffix "${suffix}"
rootdn "${rootAccount.bindDn}"
rootpw "${rootAccount.bindPassword}"
directory ${folder}/data
limits dn.exact="${serviceAccount.bindDn}" size.soft=500 size.hard=500 size.prtotal=unlimited
overlay memberof
access to attrs=userPassword by anonymous auth by * none
access to dn.exact="${hiddenDn}" by dn.exact="${serviceAccount.bindDn}" search by * none
access to * by dn.exact="${serviceAccount.bindDn}" read by * none
`

type Attributes = Record<string, string | readonly string[]>

const entry = (dn: string, attributes: Attributes): string =>
  Object.entries({ dn, ...attributes })
    .flatMap(([name, values]) => [values].flat().map((value) => [name, value] as const))
    .map(([name, value]) => `${name}:${value.startsWith(': ') ? value : ` ${value}`}`)
    .join('\n')

/** Returns a user as LDIF, with the password `password of <uid>`. */
export function userEntry(uid: string, others: Attributes = {}): string {
  const fields = { uid, cn: uid, sn: uid, mail: `${uid}@acme.test`, userPassword: `password of ${uid}` }
  return entry(`uid=${uid},${usersDn}`, { objectClass: 'inetOrgPerson', ...fields, ...others })
}

/** `members` are names of users, or distinguished names. */
export function groupEntry(cn: string, ...members: string[]): string {
  const member = members.map((name) => (name.includes('=') ? name : `uid=${name},${usersDn}`))
  return entry(`cn=${cn},${groupsDn}`, { objectClass: 'groupOfNames', cn, member })
}

const base = [
  entry(suffix, { objectClass: ['dcObject', 'organization'], dc: 'acme', o: 'Acme' }),
  entry(usersDn, { objectClass: 'organizationalUnit', ou: 'people' }),
  entry(groupsDn, { objectClass: 'organizationalUnit', ou: 'groups' }),
  entry(hiddenDn, { objectClass: 'organizationalUnit', ou: 'hidden' }),
  entry(serviceAccount.bindDn, {
    objectClass: ['organizationalRole', 'simpleSecurityObject'],
    cn: 'service',
    userPassword: serviceAccount.bindPassword,
  }),
]

export async function startSlapd({ plain, secure }: { plain: number; secure: number }, entries: readonly string[]) {
  await using starting = new AsyncDisposableStack()
  const folder = starting.use(await temporaryFolder()).path
  const { ca } = await createCertificates(folder)
  await mkdir(join(folder, 'data'))
  await writeFile(join(folder, 'slapd.conf'), configuration(folder))
  await writeFile(join(folder, 'entries.ldif'), [...base, ...entries].join('\n\n'))
  await outputOf('slapadd', '-q', '-f', join(folder, 'slapd.conf'), '-l', join(folder, 'entries.ldif'))
  const urls = `ldap://127.0.0.1:${plain}/ ldaps://127.0.0.1:${secure}/`
  const args = ['-d', '0', '-h', urls, '-f', join(folder, 'slapd.conf')]
  const program = starting.use(new Program('slapd', args, { cwd: folder, env: { PATH: process.env['PATH'] } }))
  await Promise.all(
    [plain, secure].map((port) => waitFor(`slapd answers at ${port}`, () => isListening({ port, host: '127.0.0.1' }))),
  )
  const started = starting.move()
  return { ca, program, [Symbol.asyncDispose]: () => started.disposeAsync() }
}
