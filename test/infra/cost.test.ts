import { expect, test } from 'vitest'
import { deploymentOf } from '../../bench/units/deployment.ts'
import { readInputs } from '../../scripts/cost/inputs.ts'
import { production } from './stages.ts'

test('the page about cost counts the deployment as it is', async () => {
  const { units } = await readInputs()
  expect(units.deployment, 'run npm run cost -- --measure').toEqual(deploymentOf(production))
})
