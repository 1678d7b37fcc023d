import type { ReactNode } from 'react'
import { Button } from '../../ui/button.tsx'
import { Form } from '../../ui/form.tsx'
import { useFirstField } from '../../ui/use-first-field.ts'
import { Standalone } from '../../shell/standalone.tsx'
import { Progress } from './progress.tsx'
import { Review } from './review.tsx'
import styles from './setup.module.css'
import { AdministratorStep, NetworkStep, PlatformStep, TokenStep, WelcomeStep } from './step-fields.tsx'
import { steps, type StepName } from './steps.ts'
import { type Setup, useSetup } from './use-setup.ts'

const contents: Record<StepName, (props: { setup: Setup }) => ReactNode> = {
  welcome: WelcomeStep,
  platform: PlatformStep,
  network: NetworkStep,
  administrator: AdministratorStep,
  token: TokenStep,
  review: Review,
}

export function SetupPage() {
  const setup = useSetup()
  const { step } = setup
  return (
    <Standalone title="Set up the platform" brand="Platform Management Service" isWide>
      <Progress step={step} />
      <Step key={step} setup={setup} />
    </Standalone>
  )
}

/** One step with its fields. Enter continues. */
function Step({ setup }: { setup: Setup }) {
  const section = useFirstField<HTMLElement>()
  const { step, failure, next, back } = setup
  const Content = contents[step]
  const title = steps.find(({ name }) => name === step)?.title
  return (
    <section ref={section} className={styles['step']} aria-labelledby="step">
      <h2 id="step">{title}</h2>
      <Form
        onSubmit={next}
        failure={failure}
        submitLabel={step === 'review' ? 'Complete setup' : 'Continue'}
        actions={step !== 'welcome' && <Button onClick={back}>Back</Button>}
      >
        <Content setup={setup} />
      </Form>
    </section>
  )
}
