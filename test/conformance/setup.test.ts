import { expect } from 'vitest'
import { expectStatus } from './support/answer.ts'
import { entriesOf } from './support/audit.ts'
import { completeSetupPath, setupBody, setupStatusPath } from './support/setup.ts'
import { test } from './support/test.ts'

// The global setup completes setup and checks its rules.
test('rejects every setup request with 403 once setup is complete', async ({ anonymous, platform }) => {
  const answers = [await anonymous.get(setupStatusPath)]
  for (const json of [undefined, [], {}, { initialAdminToken: 'admin.wrong' }, setupBody(platform.options)]) {
    answers.push(await anonymous.post(completeSetupPath, json))
  }
  for (const answer of answers) expect(expectStatus(answer, 403, 'setup_already_complete').setupComplete).toBe(true)
})

test('records the completion of setup', async ({ admin }) => {
  await entriesOf(admin, 'action=setup.complete', 1)
})
