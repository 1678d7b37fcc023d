import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { request } from 'node:https'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { freePorts } from '../support/free-ports.ts'
import { missingPrograms } from '../support/installed-programs.ts'
import { sampled } from '../support/long.ts'
import { openMqtt } from '../support/mqtt-client.ts'
import { options, PlatformProcess } from '../support/platform.ts'
import { Program } from '../support/program.ts'
import { createCertificates } from '../support/slapd.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { isListening, waitFor } from '../support/wait-for.ts'

/** Returns the example in docs/operations.md for a configuration language, with the addresses of this test. */
async function exampleOf(language: string, changes: Record<string, string>): Promise<string> {
  const guide = await readFile('docs/operations.md', 'utf8')
  const [, example = ''] = new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\``, 'ms').exec(guide) ?? []
  return Object.entries(changes).reduce((result, [before, after]) => {
    expect(result).toContain(before)
    return result.replaceAll(before, after)
  }, example)
}

const proxies = {
  nginx: async (folder: string, port: number, upstream: string) => {
    const [plainPort] = await freePorts(1)
    const file = join(folder, 'nginx.conf')
    const site = await exampleOf('nginx', {
      'listen 80;': `listen 127.0.0.1:${plainPort};`,
      '443 ssl': `127.0.0.1:${port} ssl`,
      'platform.example.com': 'localhost',
      '/etc/ssl/platform.pem': join(folder, 'cert.pem'),
      '/etc/ssl/platform.key': join(folder, 'key.pem'),
      '127.0.0.1:8080': upstream,
    })
    const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${folder};`)
    const user = process.getuid?.() === 0 ? 'user root;' : ''
    const http = `access_log off; ${paths.join(' ')}\n${site}`
    await writeFile(file, `${user} pid ${folder}/pid; events {}\nhttp { ${http} }`)
    return ['-p', folder, '-e', 'stderr', '-c', file, '-g', 'daemon off;']
  },
  caddy: async (folder: string, port: number, upstream: string) => {
    const file = join(folder, 'Caddyfile')
    const tls = `tls ${join(folder, 'cert.pem')} ${join(folder, 'key.pem')}`
    const site = await exampleOf('caddy', {
      'platform.example.com {': `localhost:${port} {\nbind 127.0.0.1\n${tls}`,
      '127.0.0.1:8080': upstream,
    })
    await writeFile(file, `{\nadmin off\nauto_https disable_redirects\n}\n${site}`)
    return ['run', '--adapter', 'caddyfile', '--config', file]
  },
}

for (const [name, argumentsOf] of sampled(Object.entries(proxies))) {
  const skipReason = missingPrograms(name, 'openssl')
  test.skipIf(skipReason)(
    `signs in, sees the client, limits bodies and passes channels behind the documented ${name}${skipReason}`,
    async () => {
      await using platform = await PlatformProcess.start({ PLAT_TRUSTED_PROXIES: '127.0.0.1' })
      await platform.setUp()
      await using folder = await temporaryFolder()
      const { ca } = await createCertificates(folder.path)
      const [port = 0] = await freePorts(1)
      const proxyArguments = await argumentsOf(folder.path, port, new URL(platform.url).host)
      const env = { ...process.env, HOME: folder.path, XDG_DATA_HOME: folder.path, XDG_CONFIG_HOME: folder.path }
      await using proxy = new Program(name, proxyArguments, { cwd: folder.path, env })
      await waitFor(`${name} listens`, async () => proxy.hasEnded || (await isListening({ host: '127.0.0.1', port })))

      const origin = `https://localhost:${port}`
      const send = async (method: string, path: string, headers: Record<string, string> = {}, body = '') => {
        // The client has another loopback address than the proxy, and forges the forwarding headers.
        const connection = {
          ca,
          host: '127.0.0.1',
          port,
          localAddress: '127.0.0.2',
          servername: 'localhost',
          agent: false,
        }
        const ownHeaders = {
          host: `localhost:${port}`,
          origin,
          'x-forwarded-for': '203.0.113.1',
          'x-forwarded-host': 'evil.example',
        }
        const outgoing = request({ ...connection, method, path, headers: { ...ownHeaders, ...headers } }).end(body)
        const [response] = (await once(outgoing, 'response')) as [IncomingMessage]
        return { status: response.statusCode, headers: response.headers, body: await text(response) }
      }
      const json = { 'content-type': 'application/json' }
      const signedIn = await send('POST', '/api/v1/auth/session', json, JSON.stringify(options))
      expect(signedIn.status).toBe(200)
      const cookie = (signedIn.headers['set-cookie'] ?? []).map((each) => each.split(';')[0]).join('; ')
      expect(cookie).toContain('__Host-plat_access=')
      const sessions = JSON.parse((await send('GET', '/api/v1/users/me/sessions', { cookie })).body)
      expect(JSON.stringify(sessions)).toContain('127.0.0.2')
      expect(JSON.stringify(sessions)).not.toContain('203.0.113.1')

      const page = await send('GET', '/', { accept: 'text/html' })
      expect(page.headers['strict-transport-security']).toMatch(/max-age=/)
      const bodies = [4 * 1024 * 1024, 4 * 1024 * 1024 + 1].map((length) => 'x'.repeat(length))
      const answers = await Promise.all(bodies.map((body) => send('POST', '/api/v1/jobs', { ...json, cookie }, body)))
      expect(answers.map(({ status, body }) => [status, JSON.parse(body).error])).toEqual([
        [400, 'invalid_json'],
        [413, 'payload_too_large'],
      ])

      // Code 5 (not authorized): the platform has received the password through the proxy, and rejected it.
      using channel = await openMqtt(`wss://localhost:${port}/channel`, 'mqtt', { ca })
      expect(await channel.connect('relay', 'no proof')).toBe(5)
    },
  )
}
