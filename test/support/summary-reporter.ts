import { DefaultReporter, type TestCase, type TestModule } from 'vitest/node'

const slowestCount = 10

/**
 * Prints details of failed test files only, then totals, the time by project, the slowest files, annotations and
 * missing programs.
 */
// oxlint-disable-next-line import/no-default-export -- vitest loads the default export
export default class SummaryReporter extends DefaultReporter {
  constructor() {
    super({ summary: false })
  }

  override onTestModuleEnd(module: TestModule): void {
    if (!module.ok()) super.onTestModuleEnd(module)
  }

  override onTestRunEnd(...parameters: Parameters<DefaultReporter['onTestRunEnd']>): void {
    super.onTestRunEnd(...parameters)
    const [modules] = parameters
    const seconds = new Map<string, number>()
    for (const { project, ...module } of modules.map(timed)) {
      seconds.set(project, (seconds.get(project) ?? 0) + module.seconds)
    }
    this.log(`Seconds by project: ${[...seconds].map(([name, sum]) => `${name} ${sum.toFixed(0)}`).join(', ')}`)
    this.log('Slowest files:')
    for (const { path, seconds: taken } of modules
      .map(timed)
      .toSorted((a, b) => b.seconds - a.seconds)
      .slice(0, slowestCount)) {
      this.log(`  ${taken.toFixed(1).padStart(6)} s  ${path}`)
    }
    const tests = modules.flatMap((module) => [...module.children.allTests()])
    for (const { message } of tests.flatMap((test) => test.annotations())) this.log(message)
    const missingCounts = missingPeers(modules.flatMap((module) => [...module.children.allTests('skipped')]))
    if (missingCounts.size > 0)
      this.log(
        `Skipped tests for missing programs: ${[...missingCounts].map(([name, count]) => `${name} (${count})`).join(', ')}`,
      )
  }
}

const timed = (module: TestModule) => ({
  path: module.relativeModuleId,
  project: module.project.name,
  seconds: module.diagnostic().duration / 1000,
})

/** Returns the number of skipped tests by missing program. The titles of these tests name the programs. */
function missingPeers(skipped: readonly TestCase[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const { fullName } of skipped) {
    const [, names] = /this machine has no ([^)]+)\)/.exec(fullName) ?? []
    for (const name of names?.split(', ') ?? []) counts.set(name, (counts.get(name) ?? 0) + 1)
  }
  return counts
}
