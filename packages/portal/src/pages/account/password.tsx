import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { useMe } from '../../api/account.ts'
import { isApiError, withMessage } from '../../api/api-error.ts'
import { api, expectNoBody, type Schemas } from '../../api/client.ts'
import { Card } from '../../ui/card.tsx'
import { PasswordField, SelectField } from '../../ui/field.tsx'
import { Form, type FormValues } from '../../ui/form.tsx'
import { showToast } from '../../ui/toast.tsx'
import styles from './account.module.css'

export function Password() {
  const { username, authProvider } = useMe()
  const queries = useQueryClient()
  const [changeCount, setChangeCount] = useState(0)
  if (authProvider !== 'local') {
    return (
      <Card title="Password">
        <p className={styles['text']}>Your identity provider manages your account. Change your password there.</p>
      </Card>
    )
  }
  const change = async ({ currentPassword = '', newPassword = '', days = '0' }: FormValues) => {
    await send({ currentPassword, newPassword, ...revocationOf(Number(days)) })
    showToast('Password changed', 'All your other sessions have ended.')
    setChangeCount(changeCount + 1)
    await Promise.all(['sessions', 'api-tokens'].map((name) => queries.invalidateQueries({ queryKey: [name] })))
  }
  return (
    <Card title="Change password">
      <p className={styles['text']}>This ends all your other sessions.</p>
      <div className={styles['form']}>
        {/* The key changes after each success, so that the form is empty again. */}
        <Form key={changeCount} submitLabel="Change password" onSubmit={change}>
          {/* Password managers store a password together with the user name. */}
          <input type="text" name="username" value={username} autoComplete="username" readOnly hidden />
          <PasswordField
            name="currentPassword"
            label="Current password"
            autoComplete="current-password"
            maxLength={1024}
            required
          />
          <PasswordField
            name="newPassword"
            label="New password"
            hint="At least 8 characters. Common passwords are rejected."
            check={(password) => (password.length < 8 ? 'Enter at least 8 characters.' : undefined)}
            autoComplete="new-password"
            maxLength={1024}
          />
          <PasswordField
            name="again"
            label="Confirm new password"
            check={(confirmation, { newPassword }) =>
              confirmation === newPassword ? undefined : 'The passwords do not match.'
            }
            autoComplete="new-password"
            maxLength={1024}
          />
          <SelectField
            name="days"
            label="Revoke API tokens"
            hint="A person who knew your password may have created tokens."
            options={revocations}
            defaultValue="30"
          />
        </Form>
      </div>
    </Card>
  )
}

// Tokens that were created within this number of days are revoked; 0 revokes none.
const revocations = [
  { value: '1', label: 'Created in the last day' },
  { value: '30', label: 'Created in the last 30 days' },
  { value: '36500', label: 'All' },
  { value: '0', label: 'None' },
]

const revocationOf = (days: number) =>
  days === 0 ? {} : { revokeTokensSince: new Date(Math.max(0, Date.now() - days * 86_400_000)).toISOString() }

async function send(body: Schemas['PasswordChange']): Promise<void> {
  try {
    await expectNoBody(api.PUT('/api/v1/users/me/password', { body }))
  } catch (error) {
    if (!isApiError(error, 'invalid_credentials')) throw error
    const message = 'This is not your current password.'
    throw withMessage(error, message, [{ in: 'body', path: '/currentPassword', message }])
  }
}
