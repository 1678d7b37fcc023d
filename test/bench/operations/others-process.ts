/** Counts operations over a world of its own, whose setup the fixtures complete, and tells its parent. */
// Settings are read when core is first imported.
await import('../../functions/module-world.ts')
const { countFixtures } = await import('./fixtures.ts')
process.send?.(await countFixtures())
