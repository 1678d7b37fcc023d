import { useSuspenseQuery } from '@tanstack/react-query'
import { useSearch } from '@tanstack/react-router'
import { configurationQuery } from '../../api/account.ts'
import { ErrorNote } from '../../ui/error-note.tsx'
import { TextField } from '../../ui/field.tsx'
import { Form } from '../../ui/form.tsx'
import { PasswordField } from '../../ui/password-field.tsx'
import { Loading } from '../../ui/state.tsx'
import { useFirstField } from '../../ui/use-first-field.ts'
import { Standalone } from '../../shell/standalone.tsx'
import { Providers } from './providers.tsx'
import styles from './sign-in.module.css'
import { type SignInState, useSignIn } from './use-sign-in.ts'

const notices = { 'setup-complete': 'Setup is complete. Sign in as the administrator.' }

export function SignInPage() {
  const { platformName } = useSuspenseQuery(configurationQuery).data
  const { notice } = useSearch({ from: '/sign-in' })
  const { enter, failure, returnTo, isTrading } = useSignIn()
  return (
    <Standalone title="Sign in" brand={platformName ?? 'Platform'}>
      {notice !== undefined && (
        <p role="status" className={styles['notice']}>
          {notices[notice]}
        </p>
      )}
      {failure !== undefined && <ErrorNote error={failure} />}
      {isTrading ? (
        <Loading what="your session" />
      ) : (
        <>
          <Credentials enter={enter} />
          <Providers returnTo={returnTo} />
        </>
      )}
    </Standalone>
  )
}

function Credentials({ enter }: Pick<SignInState, 'enter'>) {
  const element = useFirstField<HTMLDivElement>()
  return (
    <div ref={element}>
      <Form
        submitLabel="Sign in"
        onSubmit={({ username = '', password = '' }) => enter({ username: username.trim(), password })}
      >
        <TextField
          name="username"
          label="User name"
          autoComplete="username"
          autoCapitalize="none"
          spellCheck={false}
          maxLength={254}
          required
        />
        <PasswordField name="password" label="Password" autoComplete="current-password" maxLength={1024} required />
      </Form>
    </div>
  )
}
