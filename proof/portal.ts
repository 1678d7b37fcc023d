import type { Part } from './part.ts'
import { runSuite, workers } from './suite.ts'

/** As vitest filters them. */
export const files: readonly string[] = ['test/portal/']

export const part: Part = {
  title: 'Hostile texts and accessibility in the portal',
  how:
    'In a real browser: every payload in every text field and in all that modules, scripts and names can show; every page, dialog and ' +
    'state in both themes and two widths through axe. Nothing may run, nothing serious may be found.',
  run: (effort) => runSuite('tests in the browser that pass', { files, workers }, effort),
}
