import { Link } from '@tanstack/react-router'
import { Check } from 'lucide-react'
import type { ReactNode } from 'react'
import { Standalone } from '../../shell/standalone.tsx'
import { Button } from '../../ui/button.tsx'
import { DescriptionList } from '../../ui/card.tsx'
import { Form } from '../../ui/form.tsx'
import { useFirstField } from '../../ui/hooks.ts'
import styles from './setup.module.css'
import { AdministratorStep, NetworkStep, PlatformStep, TokenStep, WelcomeStep } from './step-fields.tsx'
import { indexOfStep, type StepName, steps } from './steps.ts'
import { isTrialAddress } from './trial-address.ts'
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

// The fields are in a form, so that the Enter key continues.
function Step({ setup }: { setup: Setup }) {
  const section = useFirstField<HTMLElement>()
  const { step, failure, next, back } = setup
  const Content = contents[step]
  const title = steps.find(({ name }) => name === step)?.title
  return (
    <section ref={section} className={styles['step']} aria-labelledby="step">
      <h2 id="step">{title}</h2>
      <Form
        // The wizard keeps the values of all steps.
        hasDraft={false}
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

export function Progress({ step }: { step: StepName }) {
  const currentIndex = indexOfStep(step)
  return (
    <nav aria-label="Setup steps">
      <ol className={styles['steps']}>
        {steps.map(({ name, title }, place) => (
          <li key={name} aria-current={place === currentIndex ? 'step' : undefined}>
            <span className={styles['mark']} aria-hidden>
              {place < currentIndex ? <Check size={12} /> : place + 1}
            </span>
            {place < currentIndex ? (
              <Link to="/setup" search={{ step: name }}>
                {title}
              </Link>
            ) : (
              title
            )}
          </li>
        ))}
      </ol>
    </nav>
  )
}

/** All values except secrets, with links to the steps that change them. */
export function Review({ setup: { form } }: { setup: Setup }) {
  const { platformName, timezone, publicUrl, adminUsername, adminEmail } = form
  return (
    <>
      <ReviewSection step="platform" title="Platform" items={{ Name: platformName, 'Time zone': timezone }} />
      <ReviewSection
        step="network"
        title="Network"
        items={{ 'Public address': isTrialAddress(publicUrl) ? `${publicUrl} (trial)` : publicUrl }}
      />
      <ReviewSection
        step="administrator"
        title="Administrator"
        items={{ 'User name': adminUsername, 'E-mail': adminEmail, Password: 'as entered' }}
      />
      <ReviewSection step="token" title="One-time token" items={{ Token: 'checked' }} />
    </>
  )
}

const ReviewSection = ({ step, title, items }: { step: StepName; title: string; items: Record<string, string> }) => (
  <div>
    <div className={styles['part']}>
      <h3>{title}</h3>
      <Link to="/setup" search={{ step }} aria-label={`Change: ${title}`}>
        Change
      </Link>
    </div>
    <DescriptionList items={Object.entries(items)} />
  </div>
)
