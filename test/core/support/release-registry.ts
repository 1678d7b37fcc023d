import { startReleaseRegistry } from '../../support/release.ts'

/** Starts a registry with releases. Does not import core, which reads the settings when it is imported. */
export async function startReleaseFixtures() {
  const registry = await startReleaseRegistry()
  Object.assign(process.env, registry.settings)
  return { ...registry, close: () => registry[Symbol.asyncDispose]() }
}
