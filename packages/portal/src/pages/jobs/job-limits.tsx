import { TextField } from '../../ui/field.tsx'

const number = { type: 'number', inputMode: 'numeric', min: 1, step: 1 } as const

/** How long a job may run, and may wait. */
export const JobLimits = ({ timeoutSeconds }: { timeoutSeconds: number | undefined }) => (
  <>
    <TextField
      {...number}
      name="timeoutMinutes"
      label="May run for (minutes)"
      max={2880}
      defaultValue={timeoutSeconds === undefined ? '' : String(Math.ceil(timeoutSeconds / 60))}
      placeholder="60"
      isOptional
    />
    <TextField
      {...number}
      name="deliverWithinMinutes"
      label="May wait for its relay (minutes)"
      max={43_200}
      placeholder="60"
      hint="A job whose relay does not come in time fails and never runs."
      isOptional
    />
  </>
)

/** How carefully a batch goes on. */
export const BatchLimits = () => (
  <>
    <TextField
      {...number}
      name="maxConcurrency"
      label="At most so many at once"
      max={500}
      placeholder="all"
      isOptional
    />
    <TextField
      {...number}
      name="maxErrors"
      min={0}
      label="Stop after so many failures"
      max={500}
      placeholder="never"
      hint="Jobs that have not begun by then are cancelled."
      isOptional
    />
  </>
)
