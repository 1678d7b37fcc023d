import { spawn } from 'node:child_process'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import type { Credentials } from '@platform/oci/client'
import { CliError } from '../exit.ts'
import { memberOf, parseJson, readJson } from './json.ts'
import { ownRegistry } from './runtime.ts'

/**
 * Finds credentials for a registry, in this order: from the local platform, the environment, or Docker's configuration.
 * The environment is used only if the command targets this registry (`isTarget`).
 */
export async function credentialsFor(registry: string, isTarget: boolean): Promise<Credentials | undefined> {
  const localRegistry = await ownRegistry()
  if (localRegistry?.host === registry) return { username: localRegistry.username, password: localRegistry.password }
  return (isTarget ? environmentCredentials() : undefined) ?? dockerCredentials(registry)
}

function environmentCredentials(): Credentials | undefined {
  const { PLAT_REGISTRY_USERNAME: username, PLAT_REGISTRY_PASSWORD: password } = process.env
  if (username && password) return { username, password }
  if (!username && !password) return undefined
  throw new CliError('usage', 'Set both PLAT_REGISTRY_USERNAME and PLAT_REGISTRY_PASSWORD, or neither.')
}

// Docker's configuration names Docker Hub by this URL.
const dockerName = (registry: string): string => (registry === 'docker.io' ? 'https://index.docker.io/v1/' : registry)

async function dockerCredentials(registry: string): Promise<Credentials | undefined> {
  const folder = process.env['DOCKER_CONFIG'] || join(homedir(), '.docker')
  const config = await readJson(join(folder, 'config.json'))
  const name = dockerName(registry)
  const helper = memberOf(config, 'credHelpers', name) ?? memberOf(config, 'credsStore')
  const pair = memberOf(config, 'auths', name, 'auth')
  if (typeof pair === 'string' && pair !== '') return parsePair(pair)
  return typeof helper === 'string' ? helperCredentials(helper, name) : undefined
}

function parsePair(pair: string): Credentials | undefined {
  const [username = '', ...password] = Buffer.from(pair, 'base64').toString('utf8').split(':')
  return { username, password: password.join(':') }
}

// A credential helper that is not installed counts as no credentials.
async function helperCredentials(helper: string, name: string): Promise<Credentials | undefined> {
  const child = spawn(`docker-credential-${helper}`, ['get'], { stdio: ['pipe', 'pipe', 'ignore'] })
  const startFailure = new Promise<string>((resolve) => child.on('error', () => resolve('')))
  child.stdin.on('error', () => {})
  child.stdin.end(name)
  const output = parseJson(await Promise.race([text(child.stdout), startFailure]))
  const [username, password] = [memberOf(output, 'Username'), memberOf(output, 'Secret')]
  return typeof username === 'string' && typeof password === 'string' ? { username, password } : undefined
}
