import { startReleaseRegistry } from '../../support/release.ts'

/** A registry with releases that the platform is told to look at. Loads nothing of core's settings: these come first. */
export async function startReleaseFixtures() {
  const registry = await startReleaseRegistry()
  Object.assign(process.env, registry.settings)
  return { ...registry, close: () => registry[Symbol.asyncDispose]() }
}
