import { preparePortal } from '../../core/support/oidc.ts'
import { badUrls, privateHosts } from '../../core/support/addresses.ts'
import { all, atLeast, type Effort, type Figure, none } from '../part.ts'
import { fieldsOf } from './fields.ts'
import { callNames, publicOnes } from './names.ts'
import { type Allowed, isAwake, type startCanary, watchConnections } from './servers.ts'
import { callSlow } from './slow.ts'

type Canary = Awaited<ReturnType<typeof startCanary>>

/** Addresses of the canary in every spelling, by both schemes, and what is no address that may be called. */
function addressesOf({ port }: Canary, every: number): URL[] {
  const hosts = [...privateHosts, 'localhost', 'localhost.', 'ip6-localhost', 'LOCALHOST', 'a.localhost']
  const texts = hosts.flatMap((host) => [`http://${host}:${port}/x`, `https://${host}:${port}/x`])
  const bad = badUrls.map((text) => text.replace('127.0.0.1:99999', `127.0.0.1:${port}`))
  const parsed = [...texts, ...bad].map((text) => URL.parse(text)).filter((url) => url !== null)
  return parsed.filter((_, index) => index % every === 0)
}

/** Fields that are not asked at all, whatever they name. */
const neverAsked = new Set(['publicUrl', 'authorization_endpoint'])

export async function figuresOf(canary: Canary, allowed: Allowed, { isShort, say }: Effort): Promise<Figure[]> {
  await preparePortal()
  const addresses = addressesOf(canary, isShort ? 40 : 1)
  const fields = fieldsOf(allowed)
  const hits: string[] = []
  const connections = watchConnections(publicOnes)
  let visits = 0
  for (const { name, visit } of fields) {
    for (const address of addresses) {
      const before = canary.hits()
      await visit(address).catch(() => undefined)
      visits++
      if (canary.hits() > before) hits.push(`${name}: ${address.href}`)
    }
    if (!isShort) say(`${name}: ${addresses.length} addresses`)
  }
  const before = canary.hits()
  const calls = await callNames(canary.port)
  const byNames = canary.hits() - before
  const reached = await reachedFields(allowed)
  const unreached = fields.filter(({ name }) => !reached.includes(name) && !neverAsked.has(name))
  for (const { name } of unreached) say(`Nothing is shown of ${name}: an allowed address is not asked either.`)
  const slow = await callSlow()
  for (const line of [...hits, ...connections.forbidden, ...slow.tooMuch]) say(line)
  return [
    all('canaries that see who connects', (await isAwake(canary)) ? 1 : 0, 1),
    all(
      'fields by which an address that is allowed is reached',
      fields.length - neverAsked.size - unreached.length,
      fields.length - neverAsked.size,
    ),
    ...(isShort ? [] : [atLeast('addresses for each field', addresses.length, 40)]),
    none(
      'connections begun to other machines that may not be called',
      connections.forbidden.length,
      `${connections.seen()}`,
    ),
    none('visits of the canary', hits.length, `${visits.toLocaleString('en')} of ${fields.length} fields`),
    none('visits of the canary by names that lead there, now or later', byNames, `${calls} calls`),
    none('calls of servers with bad manners that took too long or too much', slow.tooMuch.length, `${slow.calls}`),
  ]
}

/** The fields by which a server is visited that may be: the others would show nothing. */
async function reachedFields(allowed: Allowed): Promise<string[]> {
  const reached: string[] = []
  for (const { name, visit, visits = allowed.visits } of fieldsOf(allowed)) {
    allowed.answers({ status: 404 })
    const before = visits()
    await visit(new URL(`${allowed.url}/x`)).catch(() => undefined)
    if (visits() > before) reached.push(name)
  }
  return reached
}
