import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { freePorts } from './free-ports.ts'
import { Program } from './program.ts'

/**
 * Starts Debian's OpenSSH server on loopback for the current user, with `folder` as the home folder of its sessions.
 * Returns the settings of an ssh node.
 */
export async function startSshd(folder: string) {
  for (const name of ['host', 'key'])
    execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', join(folder, name)])
  // The server refuses to start without this folder.
  mkdirSync('/run/sshd', { recursive: true })
  const [port] = await freePorts(1)
  const settings = {
    ListenAddress: '127.0.0.1',
    Port: port,
    HostKey: join(folder, 'host'),
    AuthorizedKeysFile: join(folder, 'key.pub'),
    StrictModes: 'no',
    PidFile: 'none',
    PermitRootLogin: 'yes',
    // The start files of the user's shell could write output.
    SetEnv: `HOME=${folder}`,
    PermitUserRC: 'no',
  }
  const config = join(folder, 'sshd_config')
  writeFileSync(
    config,
    Object.entries(settings)
      .map(([name, value]) => `${name} ${value}\n`)
      .join(''),
  )
  const server = new Program('/usr/sbin/sshd', ['-D', '-e', '-f', config], { cwd: folder, env: {} })
  await server.writes(/listening/)
  const knownHostsFile = join(folder, 'known_hosts')
  writeFileSync(knownHostsFile, `[127.0.0.1]:${port} ${readFileSync(join(folder, 'host.pub'), 'utf8')}`)
  const { username: user } = userInfo()
  return {
    node: { executor: 'ssh', host: '127.0.0.1', port, user, identityFile: join(folder, 'key'), knownHostsFile },
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}
