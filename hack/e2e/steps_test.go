package e2e

// steps are the suite, in order. A name says what holds afterwards.
var steps = []step{
	{name: "the chart is installed where restricted Pod Security is enforced, and helm test succeeds", run: installs},
	{name: "a Property becomes Ready", run: becomesReady},
	{name: "events are collected from outside and through the Service, once, and bad ones are refused", run: collects},
	{name: "the webhook gets every event, signed and hashed", run: delivers, node: true},
	{name: "the six reads answer with the right numbers", run: reads},
	{name: "people with kubectl see, export and replay by kubectl weir", run: usesKubectl},
	{name: "keys, tokens and Redis users of one tenant are of no use with another", run: keepsTenantsApart},
	{name: "an idle tenant and the image are small", run: isSmall, node: true},
	{name: "pods reach what NetworkPolicies let them, and nothing else", run: obeysNetworkPolicies, node: true},
	{name: "keys are rotated under load and no request fails", run: rotatesKeys},
	{name: "collectors are replaced and scaled under load, no request fails and no event is lost", run: rollsCollectors, node: true},
	{name: "Redis is killed under load and no acknowledged event is lost", run: survivesRedis, node: true},
	{name: "operators are killed while Properties change, and all become what they should", run: survivesTheOperator, node: true},
	{name: "the kubelet is restarted under load and no request fails", run: survivesTheKubelet, node: true},
	{name: "ClickHouse is killed under load and a history has every event once", run: keepsAHistory, node: true},
	{name: "a Property has a Redis of its own, which loses no acknowledged event and goes or stays as the policy says", run: makesRedis, node: true},
	{name: "people sign in to the console and see and do there what RBAC lets them", run: opensTheConsole, node: true},
	{name: "a Property that is edited into error says so, goes on, and heals", run: reportsErrors},
	{name: "a deleted Property leaves what its policy says", run: deletes},
	{name: "what the CronJob has backed up is restored with the same answers", run: restores, node: true},
	{name: "uninstalling leaves the definition and the volume", run: uninstalls},
	{name: "the release before is upgraded under load and no request fails", run: upgrades, node: true},
	{name: "and uninstalled again", run: uninstalls, node: true},
}
