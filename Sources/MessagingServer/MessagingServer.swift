/// Placeholder of the layout.
package enum MessagingServerLayout {}
