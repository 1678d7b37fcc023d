import { startWorld } from '../bench/support/world.ts'
import { builtAssets } from './assets.ts'
import { all, atLeast, type Effort, type Figure, none, type Part } from './part.ts'

export const part: Part = {
  title: 'Forged, foreign and expired tokens',
  how:
    'Every operation that asks who calls is sent tokens that nobody may use there: without a signature or with that of somebody ' +
    'else, with other claims, mangled, of another kind, in another place, written otherwise. All hear the same as who sends none. ' +
    'Tokens that have expired are used while the store still has their rows.',
  run: async (effort) => {
    await using world = await startWorld()
    const settings = { PLAT_LOG_LEVEL: 'error', PLAT_ASSETS_DIR: await builtAssets() }
    Object.assign(process.env, world.environment, settings)
    await import('../test/support/unlimited.ts')
    return await figuresOf(effort)
  },
}

/** Loads the platform when its settings are there. */
async function figuresOf({ isShort, say }: Effort): Promise<Figure[]> {
  const { newSeen, tryBodies, tryRelays, tryUsers } = await import('./tokens/run.ts')
  const { useExpired } = await import('./tokens/expired.ts')
  const seen = newSeen()
  // In the short version one of eleven operations for people.
  await tryUsers(isShort ? 11 : 1, seen)
  await tryRelays(seen)
  await tryBodies(seen)
  const expired = await useExpired()
  const told = [...seen.accepted, ...seen.different, ...seen.closed, ...expired.accepted, ...expired.withoutEffect]
  for (const line of told.slice(0, 50)) say(line)
  const of = `${seen.requests.toLocaleString('en')} requests to ${seen.operations} operations`
  return [
    atLeast('ways of a token to be wrong', seen.ways, 30),
    none('requests with a wrong token that are not refused', seen.accepted.length, of),
    none('refusals that tell more than one without a token', seen.different.length, of),
    none('writes by requests that are refused', seen.written, of),
    none('operations that refuse the good token, too', seen.closed.length),
    all(
      'kinds of tokens that open something until they expire',
      expired.kinds - expired.withoutEffect.length,
      expired.kinds,
    ),
    none('expired tokens that open something', expired.accepted.length, `${expired.uses} of ${expired.kinds} kinds`),
  ]
}
