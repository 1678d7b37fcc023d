import { options } from './options.ts'
import { globalPrefix } from './stage.ts'

const { alarmEmail, budgetUsd } = options

const budgetNotification = (notificationType: 'ACTUAL' | 'FORECASTED', threshold: number, address: string) => ({
  notificationType,
  threshold,
  thresholdType: 'PERCENTAGE',
  comparisonOperator: 'GREATER_THAN',
  subscriberEmailAddresses: [address],
})

// The budget covers the account, because a filter by tag matches no costs until the tag is activated for billing.
if (alarmEmail && budgetUsd) {
  new aws.budgets.Budget('Budget', {
    name: globalPrefix,
    budgetType: 'COST',
    limitAmount: budgetUsd,
    limitUnit: 'USD',
    timeUnit: 'MONTHLY',
    notifications: [budgetNotification('ACTUAL', 80, alarmEmail), budgetNotification('FORECASTED', 100, alarmEmail)],
  })
}
